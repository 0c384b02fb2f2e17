/**
 * Who takes part: the list whose hash the task holds, in which nobody stands twice under two spellings of one id.
 *
 *     form(id)   NFKC, then until nothing changes: full case folding, what nobody sees out, NFKC
 *
 * Clients agree because of Unicode's stability policy: of characters that one version assigns, every later version makes
 * the same form. Characters that 14.0 does not assign are refused.
 */

import { type Bytes, canonical, DeviceError, hex, type Task } from "./device.js";

const CODE = "bad-ids";
/** White space, controls, default ignorables (DerivedCoreProperties.txt), marks of annotation, a blank of Braille. */
const UNSEEN =
  /[\0- \x7f-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;
/** No character, or none of Unicode 14.0; the ranges were assigned from 15.0 to 17.0. */
const UNKNOWN = RegExp(
  "[\\p{Cn}\\p{Co}\\p{Cs}" +
    "\\u0897\\u088f\\u0c5c\\u0cdc\\u0cf3\\u0ece\\u1acf-\\u1aeb\\u1b4e\\u1b4f\\u1b7f\\u1c89\\u1c8a\\u20c1\\u2427-\\u2429\\u2b96" +
    "\\u2ffc-\\u2fff\\u31e4-\\u31ef\\ua7cb-\\ua7cf\\ua7d2\\ua7d4\\ua7da-\\ua7f1\\ufbc3-\\ufbd2\\ufd90\\ufd91\\ufdc8-\\ufdce" +
    "\\u{105c0}-\\u{105f3}\\u{10940}-\\u{10959}\\u{10d40}-\\u{10d8f}\\u{10ec2}-\\u{10eff}\\u{1123f}-\\u{11241}" +
    "\\u{11380}-\\u{113e2}\\u{116d0}-\\u{116e3}\\u{11b00}-\\u{11bf9}\\u{11db0}-\\u{11de9}\\u{11f00}-\\u{11f5a}\\u{1342f}" +
    "\\u{13439}-\\u{143fa}\\u{16100}-\\u{16139}\\u{16d40}-\\u{16d79}\\u{16ea0}-\\u{16ed3}\\u{16ff2}-\\u{16ff6}" +
    "\\u{187f8}-\\u{187ff}\\u{18cff}\\u{18d09}-\\u{18df2}\\u{1b132}\\u{1b155}\\u{1cc00}-\\u{1cef0}\\u{1d2c0}-\\u{1d2d3}" +
    "\\u{1df25}-\\u{1df2a}\\u{1e030}-\\u{1e08f}\\u{1e4d0}-\\u{1e6ff}\\u{1f6d8}-\\u{1f6dc}\\u{1f774}-\\u{1f77f}\\u{1f7d9}" +
    "\\u{1f8b2}-\\u{1f8d8}\\u{1fa54}-\\u{1fa57}\\u{1fa75}-\\u{1fa77}\\u{1fa87}-\\u{1fa8f}\\u{1faad}-\\u{1faaf}" +
    "\\u{1fabb}-\\u{1fabf}\\u{1fac6}-\\u{1facf}\\u{1fada}-\\u{1fadf}\\u{1fae8}-\\u{1faef}\\u{1faf7}\\u{1faf8}" +
    "\\u{1fbcb}-\\u{1fbef}\\u{1fbfa}\\u{2b739}-\\u{2b73f}\\u{2cea2}-\\u{2cead}\\u{2ebf0}-\\u{2ee5d}\\u{31350}-\\u{33479}" +
    "]",
  "u",
);

/** Return the one form of an id; two ids of one form are one person's. Refuses `bad-ids`. */
export function canonicalId(id: string): string {
  let form = id.normalize("NFKC");
  for (let before; form !== before; ) {
    before = form;
    form = form
      .toLowerCase()
      // Full case folding, by what every platform has: the dotless i stays, and Cherokee folds to upper case.
      .replace(/[^\0-~\u0131]/gu, (one) => (/[\u13a0-\u13f5]/.test((one = one.toUpperCase())) ? one : one.toLowerCase()))
      .replace(UNSEEN, "")
      // Again: what was taken out may have kept a letter and its accent apart.
      .normalize("NFKC");
  }
  if (!form || UNKNOWN.test(id)) throw new DeviceError(CODE, id);
  return form;
}

/** Return the ids of a task's people in the order of their numbers, from a line of JSON each; refuses `bad-ids`. */
export async function readIds(data: Bytes, { facts, people }: Task): Promise<string[]> {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data);
    const ids = JSON.parse(`[${text.slice(0, -1).replaceAll("\n", ",")}]`);
    // Of as many forms as people: both ends of a link would report it to somebody with a number below and one above.
    const right = ids.length === people && new Set(ids.map(canonicalId)).size === people;
    const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", canonical(ids)));
    if (right && hex(hash) === facts.ids) return ids;
  } catch {
    // Below: bytes that are no list are as wrong as another one.
  }
  throw new DeviceError(CODE);
}
