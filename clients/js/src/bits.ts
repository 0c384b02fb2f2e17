/** Bits as a text of 0 and 1, the highest of a number first; in bytes the last one is filled with zeros. */

import { type Bytes, spell, spelled } from "./bytes.js";
import { require } from "./errors.js";

export type Bits = string;

/** Return how many bits a whole number has, 0 for 0. */
export const bitLength = (number: number): number => (number ? number.toString(2).length : 0);

/** Return a number of 0 .. 2^width - 1 as bits. */
export const numberBits = (number: number, width: number): Bits => (width ? number.toString(2).padStart(width, "0") : "");

/** Return the number whose bits these are. */
export const numberOf = (bits: Bits): number => parseInt(bits, 2) || 0;

/** Return n bits as ceil(n / 8) bytes. */
export const packed = (bits: Bits): Bytes => spelled(bits, 8);

/** Return the first `count` bits of a body; refuse another length, or bits after them that are not 0. */
export function unpacked(body: Bytes, count: number): Bits {
  require(body.length === Math.ceil(count / 8), "wrong-length", body.length);
  const bits = spell(body, 8);
  require(!bits.includes("1", count), "filling");
  return bits.slice(0, count);
}
