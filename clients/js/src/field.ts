/** What a task asks of a person: features, a label, links or their degree. */

import type { Bits } from "./bits.js";
import type { Bytes } from "./bytes.js";
import type { Pair } from "./noise.js";
import type { Person } from "./person.js";
import type { Facts } from "./reading.js";

/** One question of a task; `T` is a value that was checked. */
export interface Field<T = any> {
  readonly kind: "features" | "label" | "links" | "degree";
  /** In billionths of epsilon. */
  readonly epsilon: bigint;
  /** Bits of an answer. */
  readonly width: number;
  /** How many names are paid for at most. */
  readonly most: number;
  /** Return whether its thresholds lose no more than the epsilon that is named. */
  kept(): boolean;
  /** Check a value. */
  opened(value: unknown, person: Person): Promise<T> | T;
  /** Return what is paid for, a share of epsilon each. */
  parts(opened: T): Promise<readonly Pair[]> | readonly Pair[];
  /** Return the answer, from a key of the field's noise. */
  draw(opened: T, key: Bytes, person: Person): Promise<Bits>;
  /** Return whether a device may send bits. */
  possible(bits: Bits, person: Person): boolean;
}

/** What a kind says of itself; `kind`, `epsilon` and, where every name is paid for, `most` are the same of all kinds. */
export type Own<T> = Omit<Field<T>, "kind" | "epsilon" | "most"> & { readonly most?: number };
/** How a kind reads what a task tells of a field: its facts, its epsilon, and how many people there are. */
export type Reader<T = any> = (facts: Facts, epsilon: bigint, people: number) => Own<T>;
