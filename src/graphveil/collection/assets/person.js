/**
 * The person's page:  link -> what is asked -> take part -> the round.
 *
 * The device of `device.js` checks, draws and books; these files only lead from one step to the next.
 */

import * as collector from "./collector.js";
import * as device from "./device.js";
import { fill, find, tell, theirs, visible } from "./dom.js";
import { decimal } from "./numbers.js";
import { answering, lookAgain } from "./round.js";
import { isAboutLinks, terms } from "./terms.js";
import { answersAs, doing, now, refuse, showAccounts, step, takeLimit } from "./visit.js";

const LIMIT = "limit";
const JOINED = "joined";
const DECIMAL = /^(0|[1-9]\d{0,8})(\.\d{1,9})?$/;

/** What this browser keeps of a person: secrets, what was sent, a limit. All of it stays here. */
class Home {
  constructor(ledger) {
    this.ledger = ledger;
  }

  /** Open what is kept; refused with "no-storage" where nothing can be. */
  static async open() {
    try {
      localStorage.getItem(LIMIT);
      return new Home(await device.BrowserLedger.open());
    } catch {
      throw new collector.Refused("no-storage");
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
    const made = { secret: await device.newSecret(), key: crypto.getRandomValues(new Uint8Array(32)), name };
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
    return device.spent(await this.ledger.booked());
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

/** Whether something stands behind "#" that is no place of this page: a link, or what a mail has made of one. */
const isInvited = () => location.hash !== "" && !find(location.hash.slice(1));

/** The two parts of the link, which leave the address bar. A browser's own history may keep them. */
function link() {
  if (!isInvited()) return undefined;
  const told = location.hash;
  // Before it is read: a link that was cut, or whose point is written otherwise, holds the token all the same.
  history.replaceState(null, "", location.pathname);
  const [, token, hash] = /^#([\da-f]+)\.([\da-f]{64})$/i.exec(told) ?? [];
  if (!token) refuse({ code: "bad-link" });
  return token && { token, hash: hash.toLowerCase() };
}

async function start() {
  // First of all: whatever is missing here, the token does not stay in the address bar.
  const invited = link();
  if (!globalThis.isSecureContext || !crypto.subtle) throw { code: "no-crypto" };
  now.home = await Home.open();
  await showAccounts();
  const data = await collector.taskBytes();
  if (invited) return ask(data, invited);
  const task = await device.readTask(data);
  now.who = await now.home.enrolled(device.hex(task.hash));
  if (now.who) return ask(data, { hash: device.hex(task.hash) });
  // Another task, or the same under another key: nothing of it is shown as if it were what the person agreed to.
  if (now.home.joined) refuse({ code: "other-task" });
  find("begin").hidden = false;
  find("begin-form").addEventListener("submit", (event) => {
    event.preventDefault();
    begin(data);
  });
}

/** Go on from the two parts as they were typed. */
function begin(data) {
  const typed = (id, right, said) => {
    const told = find(id).value.trim().toLowerCase();
    tell(find(id), find(`${id}-wrong`), right.test(told) ? "" : said);
    return told;
  };
  const hash = typed("hash", /^[\da-f]{64}$/, "This is no hash: it has 64 characters.");
  const token = typed(
    "token",
    /^([\da-f]{2}){21,}$/,
    "This is no token: it has 42 characters or more, 0 to 9 and a to f.",
  );
  const wrong = document.querySelector("#begin [aria-invalid]");
  if (wrong) wrong.focus();
  else doing("Checking the questions", () => ask(data, { token, hash }));
}

/** Check the task and show what is asked; go on at once where this browser takes part already. */
async function ask(data, { token, hash }) {
  now.task = await device.readTask(data, device.unhex(hash));
  now.hash = hash;
  now.names = now.task.fields.some(isAboutLinks) ? await collector.names(now.task) : [];
  const { facts } = now.task;
  document.title = `${visible(facts.name)} - graphveil`;
  fill("name", theirs(facts.name));
  fill("terms", terms(now.task, hash));
  find("begin").hidden = true;
  find("asked").hidden = false;
  now.who = await now.home.enrolled(hash);
  // Where several people share a browser: whoever came first must not be answered for by the next.
  if (now.who && token && collector.numberOf(token) !== now.who.number) throw { code: "other-link" };
  if (now.who) return answering();
  if (now.names.length && now.names[collector.numberOf(token)] === undefined) throw { code: "bad-token" };
  step("read");
  fill("join-whom", answersAs(collector.numberOf(token)));
  const limit = now.home.limit;
  find("join").hidden = false;
  find("join-limit").value = limit === undefined ? "" : decimal(limit);
  const price = now.task.fields.reduce((sum, { epsilon }) => sum + epsilon, 0n);
  find("join-limit-hint").textContent =
    `A report that answers everything costs ${decimal(price)}; the same answers again cost nothing. Empty: one collection of each organiser.`;
  find("join").onsubmit = (event) => {
    event.preventDefault();
    if (takeLimit("join-limit")) doing("Joining", () => join(token));
  };
}

/** Make a secret and a key, and tell the key with the token. */
async function join(token) {
  const begun = await now.home.begun(now.hash, now.task.facts.name);
  const told = await collector.enrol(token, device.hex(begun.key));
  device.personOf(now.task, told.number, new Uint8Array(16));
  now.who = await now.home.confirm(now.hash, begun, told);
  await answering();
}

// Who comes back to the tab sees how things stand now.
addEventListener("focus", lookAgain);
document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && lookAgain());
// A link that is pasted where the page is open changes the fragment alone.
addEventListener("hashchange", () => isInvited() && location.reload());
doing("Loading", start);
