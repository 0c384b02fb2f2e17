/** What this browser keeps of a person: secrets, what was sent, a limit. All of it stays here. */

import { BrowserLedger, newSecret, spent } from "./device.js";
import { Refused } from "./collector.js";

const LIMIT = "limit";
const JOINED = "joined";
const DECIMAL = /^(0|[1-9]\d{0,8})(\.\d{1,9})?$/;

export class Home {
  constructor(ledger) {
    this.ledger = ledger;
  }

  /** Open what is kept; refused with "no-storage" where nothing can be. */
  static async open() {
    try {
      localStorage.getItem(LIMIT);
      return new Home(await BrowserLedger.open());
    } catch {
      throw new Refused("no-storage");
    }
  }

  /** The hash of the task that was joined here last, null where none was; it pins the key that signed it. */
  get joined() {
    return localStorage.getItem(JOINED);
  }

  /** Who the person is to a task, if enrolled. */
  enrolled(task) {
    return this.ledger.enrolled(task);
  }

  // On disk before the key is told: after a lost answer the same one asks again.
  /** The secret and the key for a task, made once. */
  async begun(task, name) {
    const made = { secret: await newSecret(), key: crypto.getRandomValues(new Uint8Array(32)), name };
    await this.ledger.append(`begun ${task}`, made);
    return this.ledger.enrolled(`begun ${task}`);
  }

  /** Keep who the person is to a task, and return it. */
  async confirm(task, { secret, key }, { number, joined }) {
    await this.ledger.append(task, { number, joined, secret, key });
    localStorage.setItem(JOINED, task);
    return this.ledger.enrolled(task);
  }

  /** Keep that the collector has a report. */
  arrived(task, epoch) {
    return this.ledger.append(`arrived ${task} ${epoch}`, { at: Date.now() });
  }

  /** All reports that were booked, with the name of their collection and when the collector said that it has them. */
  async reports() {
    return Promise.all(
      (await this.ledger.booked()).map(async (one) => ({
        ...one,
        name: (await this.ledger.enrolled(`begun ${one.task}`))?.name ?? one.task.slice(0, 16),
        at: (await this.ledger.enrolled(`arrived ${one.task} ${one.epoch}`))?.at,
      })),
    );
  }

  /** What all reports cost, in billionths of epsilon. */
  async spent() {
    return spent(await this.ledger.booked());
  }

  /** Whether another collection of the same organiser was answered: without a limit of their own nobody answers two. */
  async answeredOther(organiser, task) {
    return (await this.ledger.booked()).some((one) => one.organiser === organiser && one.task !== task);
  }

  /** The person's own limit in billionths of epsilon, undefined where there is none. */
  get limit() {
    const kept = localStorage.getItem(LIMIT);
    return kept === null ? undefined : BigInt(kept);
  }

  /** Take a limit as it was typed, none where nothing was; return false where it is no number. */
  limitTo(typed) {
    const told = typed.trim();
    if (told && !DECIMAL.test(told)) return false;
    const [whole, after = ""] = told.split(".");
    if (told) localStorage.setItem(LIMIT, String(BigInt(whole + after.padEnd(9, "0"))));
    else localStorage.removeItem(LIMIT);
    return true;
  }
}
