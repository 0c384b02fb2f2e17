/**
 * A vector of declared numbers, some coordinates of which are told as one private bit each (multi-bit; 1-bit where all
 * are).
 *
 *     step     rint((v - low) / (high - low) * 2^32), half to even          in binary64; 0 .. 2^32
 *     answer   1 if word < T + (2^64 - 2 T) step / 2^32, rounded down, else 0
 *     epsilon  m ln((2^64 - T) / T)
 *
 * Source: S. Sajadmanesh, D. Gatica-Perez, "Locally Private Graph Neural Networks", CCS 2021, Algorithm 1.
 */

import { assigned } from "./assigned.js";
import { require } from "./errors.js";
import { keeps, WORD } from "./exact.js";
import type { Own } from "./field.js";
import { type Pair, words } from "./noise.js";
import { areOf, type Facts, named, real, whole } from "./reading.js";

const BAD = "bad-value";
/** From here on binary64 numbers are whole: what is added to it is rounded, half to even. */
const WHOLE = 2 ** 52;

/** Return the field that a task tells of; checked, a value is (step, coordinate) of each coordinate that is asked. */
export function features(facts: Facts, epsilon: bigint): Own<readonly Pair[]> {
  const names = named(facts, "names");
  const low = real(facts, "low");
  const high = real(facts, "high");
  const sampled = Number(whole(facts, "sampled", 1, names.length));
  const threshold = whole(facts, "threshold", 1, WORD / 2n);

  const step = (at: unknown, name: string): number => {
    require(typeof at === "number" && low <= at && at <= high, BAD, name);
    // From 0 to 1 without a cut: binary64 rounds in order.
    return ((at - low) / (high - low)) * 2 ** 32 + WHOLE - WHOLE;
  };

  return {
    width: sampled,
    kept() {
      require(low < high && isFinite(high - low), "bad-task", "high");
      return keeps(WORD - threshold, threshold, epsilon, sampled);
    },
    async opened(value, person) {
      const given = areOf(value, names) ? names.map((name) => value[name]) : value;
      require(Array.isArray(given) && given.length === names.length, BAD, "features");
      // All are checked, whichever are asked.
      const steps = given.map((one: unknown, place) => step(one, names[place]!));
      const asked = await assigned(person, names.length, sampled);
      return asked.map((column) => [steps[column]!, column] as const);
    },
    parts: (opened) => opened,
    async draw(opened, key) {
      const drawn = await words(key, opened);
      const ones = opened.map(([step]) => threshold + (((WORD - 2n * threshold) * BigInt(step)) >> 32n));
      return drawn.map((word, place) => Number(word < ones[place]!)).join("");
    },
    possible: () => true,
  };
}
