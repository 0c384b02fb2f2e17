/**
 * What a device has said and spent: one entry for each report, on disk before any byte of it leaves.
 *
 * A ledger is a list that entries are added to, each at the place that the writer saw to be free: of two that write at
 * once one is told that it came second, and begins again.  So nothing is locked, and nobody dies with a lock in hand.
 */

import type { Names } from "./answer.js";

/**
 * One report that was paid for; bytes are hexadecimal, `organiser` is the key that signed the task, `nano` is what it cost
 * in billionths of epsilon, a text.
 */
export interface Booked {
  readonly task: string;
  readonly organiser: string;
  readonly epoch: number;
  readonly nonce: string;
  readonly body: string;
  readonly names: Names;
  readonly nano: string;
}

export interface Ledger {
  /** Return all that was booked, in its order. */
  booked(): Promise<Booked[]>;
  /** Book for good at a place; return false, with nothing booked, where it is taken. */
  append(place: number, one: Booked): Promise<boolean>;
}

/** Return what was spent, in billionths of epsilon. */
export const spent = (booked: readonly Booked[]): bigint => booked.reduce((sum, { nano }) => sum + BigInt(nano), 0n);
