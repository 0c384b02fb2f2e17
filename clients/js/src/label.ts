/**
 * One of c classes: the true one is sent with the rest of the words, each other one with `w` of them.
 *
 *     answer   word / w, rounded down: the classes other than the true one in order; the true one from (c - 1) w on
 *     epsilon  ln((2^64 - (c - 1) w) / w)
 *
 * Source: P. Kairouz, K. Bonawitz, D. Ramage, "Discrete Distribution Estimation under Local Privacy", ICML 2016.
 */

import { bitLength, numberBits, numberOf } from "./bits.js";
import { require } from "./errors.js";
import { keeps, WORD } from "./exact.js";
import type { Own } from "./field.js";
import { words } from "./noise.js";
import { type Facts, named, whole } from "./reading.js";

/** Return the field that a task tells of; checked, a value is the number of a class. */
export function label(facts: Facts, epsilon: bigint): Own<number> {
  const classes = named(facts, "classes");
  const last = classes.length - 1;
  require(last, "bad-task");
  const share = whole(facts, "share", 1, WORD / BigInt(classes.length));
  const width = bitLength(last);
  return {
    width,
    kept: () => keeps(WORD - BigInt(last) * share, share, epsilon),
    opened(value) {
      const place = classes.indexOf(value as string);
      require(place >= 0, "bad-value", "label");
      return place;
    },
    parts: (opened) => [[opened, 0]],
    async draw(opened, key) {
      const other = Number((await words(key, [[opened, 0]]))[0]! / share);
      return numberBits(other >= last ? opened : other + Number(other >= opened), width);
    },
    possible: (bits) => numberOf(bits) <= last,
  };
}
