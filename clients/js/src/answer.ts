/**
 * What a device says: a body of one flag and one answer for each field, and the names of what it costs.
 *
 * A field that is not answered is a flag of 0 and zeros, so every body of a task has the same length.
 */

import { type Bits, packed, unpacked } from "./bits.js";
import { type Bytes, hex } from "./bytes.js";
import { require } from "./errors.js";
import { blocks, derived, type Secret } from "./noise.js";
import type { Person } from "./person.js";
import type { Task } from "./task.js";

/** A person's values by kind of field; "degree" reads the links as well; what is missing is not answered. */
export type Values = Readonly<Record<string, unknown>>;
/** Names of what was paid for, by field: they tell nothing without the secret. */
export type Names = Readonly<Record<string, readonly string[]>>;

/** What is sent, and names of every part with its value. */
export interface Answer {
  readonly body: Bytes;
  readonly names: Names;
}

/** Return what a device sends of a person's values; refuses `bad-value`, and nothing is drawn then. */
export async function answer(task: Task, person: Person, values: Values, secret: Secret): Promise<Answer> {
  const read = task.fields.map(({ kind }) => (kind === "degree" ? "links" : kind));
  for (const kind of Object.keys(values)) require((read as string[]).includes(kind), "bad-value", kind);
  // All before the first draw: a value that is refused leaves nothing half made.
  const opened: unknown[] = [];
  for (const [place, one] of task.fields.entries()) {
    const value = values[read[place]!] ?? null;
    opened.push(value === null ? value : await one.opened(value, person));
  }
  let bits = "";
  const names: Record<string, string[]> = {};
  for (const [place, one] of task.fields.entries()) {
    const value = opened[place];
    if (value === null) {
      bits += "0".repeat(1 + one.width);
      continue;
    }
    bits += "1" + (await one.draw(value, await derived(secret, "noise", task.hash, place), person));
    // Under a key of its own: names are kept in the clear and must tell nothing of the noise.
    const told = await blocks(await derived(secret, "name", task.hash, place), await one.parts(value));
    names[place] = told.map((block) => hex(block.subarray(0, 8)));
  }
  return { body: packed(bits), names };
}

/** Return what an answer costs, in billionths of epsilon, rounded up for each field; `paid` are the names of reports. */
export function cost(task: Task, { names }: Answer, paid: readonly Names[]): bigint {
  let total = 0n;
  for (const [place, own] of Object.entries(names)) {
    const { epsilon, most } = task.fields[+place]!;
    const old = new Set(paid.flatMap((one) => one[place] ?? []));
    const fresh = own.filter((name) => !old.has(name)).length;
    const parts = BigInt(own.length);
    if (old.size < most) total += (epsilon * BigInt(fresh) + parts - 1n) / parts;
  }
  return total;
}

/** Return the answer of each field as bits, null where it was not answered; refuses what no device sends. */
export function answers(task: Task, person: Person, body: Bytes): (Bits | null)[] {
  const bits = unpacked(body, task.bits);
  let at = 0;
  return task.fields.map((one) => {
    const own = bits.slice(at + 1, at + 1 + one.width);
    const told = bits[at] === "1";
    at += 1 + one.width;
    require(told ? one.possible(own, person) : !own.includes("1"), "impossible", one.kind);
    return told ? own : null;
  });
}
