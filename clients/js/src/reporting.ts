/**
 * From a person's values to the report that leaves: booked first, and the same one for ever after.
 *
 *     the epoch is booked        that report again, whatever the values are now
 *     else                       the task's window, answer, price, the person's own limit, book, report
 */

import { answer, cost, type Values } from "./answer.js";
import { type Bytes, hex, unhex } from "./bytes.js";
import { require } from "./errors.js";
import { type Booked, type Ledger, spent } from "./ledger.js";
import type { Secret } from "./noise.js";
import { nonceOf, type Opening, personOf, requireInside, type Task } from "./task.js";
import { type Report, report } from "./wire.js";

/** Who a device is to a task: their number, the first epoch they take part in, the secret of all noise, the key of tags. */
export interface Enrolled {
  readonly number: number;
  readonly joined: number;
  readonly secret: Secret;
  readonly key: Bytes;
}

/**
 * Return what would be booked and sent; nothing is.
 *
 * Refuses `bad-value`, or `bad-opening` where coordinates would be assigned anew.
 */
export async function preview(
  task: Task,
  opening: Opening,
  who: Enrolled,
  values: Values,
  booked: readonly Booked[],
): Promise<Booked> {
  const own = booked.filter((one) => one.task === hex(task.hash));
  const drawn = nonceOf(opening, who.joined);
  const nonce = hex(drawn);
  require(own.every((one) => one.nonce === nonce), "bad-opening");
  const made = await answer(task, personOf(task, who.number, drawn), values, who.secret);
  const nano = cost(task, made, own.map(({ names }) => names));
  const whose = { task: hex(task.hash), organiser: hex(task.key) };
  return { ...whose, epoch: opening.epoch, nonce, body: hex(made.body), names: made.names, nano: `${nano}` };
}

/**
 * Return the report of an epoch, which is on the ledger's disk by then; `cap` is the person's own limit over all tasks,
 * in billionths of epsilon, `now` in seconds since 1970.  Without a limit one task of each organiser is answered: whoever
 * signs a task twice, with another nonce, is told nothing twice.
 *
 * Refuses as `preview`, `not-open` or `closed` outside the task's window, or `cap` where the limit does not pay; nothing
 * is booked then.
 */
export async function book(
  task: Task,
  opening: Opening,
  who: Enrolled,
  values: Values,
  ledger: Ledger,
  cap?: bigint,
  now = Date.now() / 1e3,
): Promise<Report> {
  for (;;) {
    const booked = await ledger.booked();
    const old = booked.find((one) => one.task === hex(task.hash) && one.epoch === opening.epoch);
    if (!old) requireInside(task, now);
    const one = old ?? (await preview(task, opening, who, values, booked));
    const within = (them: Booked) => them.organiser !== one.organiser || them.task === one.task;
    require(old || (cap === undefined ? booked.every(within) : spent([...booked, one]) <= cap), "cap");
    // Where another writer came first, what this one saw is old.
    if (old || (await ledger.append(booked.length, one))) {
      return report(task.hash, one.epoch, unhex(one.body)!, who.secret, who.key);
    }
  }
}
