/**
 * A list of neighbours: a bit for each person, flipped by T of 2^64 words.
 *
 *     answer   bit xor (word < T), for everybody for whom this person answers; 0 for all others
 *     epsilon  ln((2^64 - T) / T) for one bit; a relationship stands in both lists in mode "both"
 *
 * Modes: in "lower" of every two people the one with the lower number answers; in "both" each does; in "directed"
 * everybody answers for the links that start at them.  Source: S. L. Warner, "Randomized Response", JASA 60, 1965.
 */

import { type Bits, packed } from "./bits.js";
import { sha256, word } from "./bytes.js";
import { require } from "./errors.js";
import { keeps, WORD } from "./exact.js";
import type { Own } from "./field.js";
import { words } from "./noise.js";
import type { Person } from "./person.js";
import { type Facts, whole } from "./reading.js";

const MODES = ["lower", "both", "directed"];

/** Return the mode that a task of so many people tells of; more than that a device has no room for. */
export function modeOf(facts: Facts, people: number): string {
  const mode = facts.mode as string;
  require(people <= 2 ** 20 && MODES.includes(mode), "bad-task", "mode");
  return mode;
}

/** Return the field that a task tells of, for so many people; checked, a value is the list in bits. */
export function links(facts: Facts, epsilon: bigint, people: number): Own<Bits> {
  const mode = modeOf(facts, people);
  const threshold = whole(facts, "threshold", 1, WORD / 2n);
  return {
    width: people,
    // Each bit has two values, so a list costs twice its epsilon at most, however often it changes.
    most: 2,
    kept: () => keeps(WORD - threshold, threshold, epsilon),
    opened: (value, person) => openedList(value, mode, person),
    // The whole list, known by the first 8 bytes of its SHA-256.
    parts: async (opened) => [[word(await sha256(packed(opened))), 0]],
    async draw(opened, key, person) {
      // A bit's own value chooses its word: a new friend redraws one bit and no other.
      const drawn = await words(key, Array.from(opened, (bit, other) => [+bit, other] as const));
      return bitsOf(person, mode, (other) => opened[other] === "1" !== drawn[other]! < threshold);
    },
    possible: (bits, person) => bits === bitsOf(person, mode, (other) => bits[other] === "1"),
  };
}

/** Return a list as bits, 0 for everybody for whom the person does not answer. */
export function openedList(value: unknown, mode: string, person: Person): Bits {
  require(Array.isArray(value), "bad-value", "links");
  const named = new Set(value);
  // Everybody who is named is checked, also where this person does not answer: a wrong list is wrong in every mode.
  const right = value.every((one) => Number.isInteger(one) && 0 <= one && one < person.people && one !== person.number);
  require(right && named.size === value.length, "bad-value", "links");
  return bitsOf(person, mode, (other) => named.has(other));
}

/** Everybody of whom something holds, in bits, 0 for those for whom the person does not answer. */
const bitsOf = ({ people, number }: Person, mode: string, holds: (other: number) => boolean): Bits =>
  Array.from({ length: people }, (_, other) =>
    Number((mode === "lower" ? other > number : other !== number) && holds(other)),
  ).join("");
