/**
 * Which coordinates a person reports: assigned by a public hash, so that nobody who forges reports chooses where they
 * weigh.
 *
 *     words = SHA-256(purpose | task hash (32) | nonce (16) | person (8) | 0, 1, 2, ... (4)), four words each
 *
 * Without replacement by R. Floyd's method (Bentley and Floyd, CACM 30(9), 1987).
 */

import { big, type Bytes, joined, sha256, utf8, word } from "./bytes.js";
import type { Person } from "./person.js";

/** Return `size` of the numbers 0 .. dimension - 1, ascending. */
export async function assigned({ task, nonce, number }: Person, dimension: number, size: number): Promise<number[]> {
  const places = [...Array(size).keys()];
  if (size === dimension) return places;
  const found = new Set<number>();
  const told = joined(utf8("graphveil/standard/2/assigned"), task, nonce, big(number, 8));
  const hashes = await Promise.all(places.map((place) => place % 4 || sha256(joined(told, big(place / 4, 4)))));
  for (const place of places) {
    const top = dimension - size + place;
    const pick = Number(word(hashes[place - (place % 4)] as Bytes, 8 * (place % 4)) % BigInt(top + 1));
    found.add(found.has(pick) ? top : pick);
  }
  return [...found].sort((one, other) => one - other);
}
