/**
 * How many links a person's list holds, with two-sided geometric noise.
 *
 *     number   sum of 2^i [draw i < t_i] over the digits, and 2^digits for each draw after them that is below the
 *              overflow, up to the first that is not; each draw is two blocks, 256 bits
 *     answer   degree + first number - second number, at least `lowest` and at most `highest`
 *     epsilon  see `exact.digitsKeep`
 *
 * Source: A. Ghosh, T. Roughgarden, M. Sundararajan, "Universally Utility-Maximizing Privacy Mechanisms", STOC 2009; of
 * lists: S. Hidano, T. Murakami, "Degree-Preserving Randomized Response", 2022, https://arxiv.org/abs/2202.10209.
 */

import { bitLength, numberBits, numberOf } from "./bits.js";
import { type Bytes, hex } from "./bytes.js";
import { require } from "./errors.js";
import { DIGIT, digitsKeep } from "./exact.js";
import type { Own } from "./field.js";
import { modeOf, openedList } from "./links.js";
import { blocks } from "./noise.js";
import { type Facts, texts, whole } from "./reading.js";

const LARGEST = 2 ** 31;

/** Return the field that a task tells of, for so many people; checked, a value is the degree. */
export function degree(facts: Facts, epsilon: bigint, people: number): Own<number> {
  const mode = modeOf(facts, people);
  const digits = texts(facts, "digits").map((digits) => whole({ digits }, "digits", 1, DIGIT));
  require(digits.length <= 60, "bad-task", "digits");
  const overflow = whole(facts, "overflow", 1, DIGIT);
  // An end that some degrees cannot reach would tell them.
  const lowest = whole(facts, "lowest", -LARGEST, 0);
  const highest = whole(facts, "highest", people - 1, LARGEST);
  const width = bitLength(Number(highest - lowest));

  /** A random number, from the draws from a place on, and the place after its last. */
  const number = async (key: Bytes, degree: number, at: number): Promise<[bigint, number]> => {
    const drawn = await draws(key, degree, at, digits.length + 1);
    let total = digits.reduce((sum, digit, place) => sum + (BigInt(drawn[place]! < digit) << BigInt(place)), 0n);
    at += drawn.length;
    for (let last = drawn.at(-1)!; last < overflow; [last] = (await draws(key, degree, at++, 1)) as [bigint]) {
      total += 1n << BigInt(digits.length);
    }
    return [total, at];
  };

  return {
    width,
    kept: () => digitsKeep(digits, overflow, epsilon),
    opened: (value, person) => openedList(value, mode, person).replaceAll("0", "").length,
    parts: (opened) => [[opened, 0]],
    async draw(opened, key) {
      const [more, at] = await number(key, opened, 0);
      const [less] = await number(key, opened, at);
      const level = BigInt(opened) + more - less;
      const told = level < lowest ? lowest : level > highest ? highest : level;
      return numberBits(Number(told - lowest), width);
    },
    possible: (bits) => numberOf(bits) <= highest - lowest,
  };
}

/** So many numbers of 256 bits, from a place on. */
async function draws(key: Bytes, degree: number, at: number, count: number): Promise<bigint[]> {
  const places = [...Array(2 * count).keys()];
  const drawn = await blocks(key, places.map((place) => [degree, 2 * at + place]));
  return drawn.flatMap((block, place) => (place % 2 ? BigInt("0x" + hex(drawn[place - 1]!) + hex(block)) : []));
}
