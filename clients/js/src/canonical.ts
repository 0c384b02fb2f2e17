/**
 * Canonical JSON: one spelling for each value, so that a hash of the bytes is a hash of the value.
 *
 * Objects with ASCII keys in ascending order, arrays, texts, whole numbers of size below 2^53, true and false; no
 * spaces, no fractions (they are texts), no null, 32 arrays and objects inside each other at most; texts as UTF-8 with
 * JSON's shortest escapes.
 */

import { type Bytes, fromUtf8, utf8 } from "./bytes.js";
import { refuse, require } from "./errors.js";

const CODE = "not-canonical";

/** Return the canonical bytes of a value, or refuse (`not-canonical`) where it has none. */
export const canonical = (value: unknown): Bytes => utf8(spelled(value));

/** Return the value of canonical bytes; bytes that are spelled otherwise are refused. */
export function parse(data: Bytes): unknown {
  let value;
  let text;
  try {
    text = fromUtf8(data);
    value = JSON.parse(text);
  } catch {
    refuse(CODE);
  }
  // One comparison finds them all: spaces, keys that stand twice or out of order, 1.0 for 1, longer escapes.
  require(spelled(value) === text, CODE);
  return value;
}

function spelled(value: unknown, deeper = 32): string {
  // A lone surrogate has no spelling.
  const plain = typeof value === "string" ? !/\p{Cs}/u.test(value) : typeof value === "boolean" || Number.isSafeInteger(value);
  if (plain) return JSON.stringify(value);
  require(value && typeof value === "object" && deeper, CODE);
  if (Array.isArray(value)) return `[${value.map((one) => spelled(one, deeper - 1))}]`;
  const members = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return `{${members.map(([key, own]) => {
    require(/^[\0-\x7f]*$/.test(key), CODE);
    return `${JSON.stringify(key)}:${spelled(own, deeper - 1)}`;
  })}}`;
}
