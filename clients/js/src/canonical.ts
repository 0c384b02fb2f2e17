/**
 * Canonical JSON: one spelling for each value, so that a hash of the bytes is a hash of the value.
 *
 * Objects with ASCII keys in ascending order, arrays, texts, whole numbers of size below 2^53, true and false; no
 * spaces, no fractions (they are texts), no null, 32 arrays and objects inside each other at most; texts as UTF-8 with
 * JSON's shortest escapes.
 */

import { type Bytes, hex, utf8 } from "./bytes.js";
import { refuse, require } from "./errors.js";

const CODE = "not-canonical";

/** Return the canonical bytes of a value, or refuse (`not-canonical`) where it has none. */
export const canonical = (value: unknown): Bytes => utf8(spelled(value));

/** Return the value of canonical bytes; bytes that are spelled otherwise are refused. */
export function parse(data: Bytes): unknown {
  let value;
  try {
    value = JSON.parse(new TextDecoder().decode(data));
  } catch {
    refuse(CODE);
  }
  // One comparison finds them all: bytes that are not UTF-8, spaces, keys that stand twice or out of order, 1.0 for 1, longer escapes.
  require(hex(canonical(value)) === hex(data), CODE);
  return value;
}

function spelled(value: unknown, deeper = 32): string {
  if (typeof value === "string") {
    require(!/\p{Cs}/u.test(value), CODE);
    return JSON.stringify(value);
  }
  if (typeof value === "boolean" || Number.isSafeInteger(value)) return String(value);
  require(value && typeof value === "object" && deeper, CODE);
  if (Array.isArray(value)) return `[${value.map((one) => spelled(one, deeper - 1))}]`;
  const members = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return `{${members.map(([key, own]) => {
    require(/^[\0-\x7f]*$/.test(key), CODE);
    return `${JSON.stringify(key)}:${spelled(own, deeper - 1)}`;
  })}}`;
}
