/** Reading the facts of a task: what is not as the standard says is `bad-task`, with its name. */

import { refuse, require } from "./errors.js";

export type Facts = Readonly<Record<string, unknown>>;

const CODE = "bad-task";
/** At most nine digits after the point, so that sums of epsilons are whole numbers everywhere. */
const DECIMAL = /^(0|[1-9]\d{0,8})(\.\d{1,9})?$/;
const REAL = /^-?(0|[1-9]\d*)(\.\d+)?(e-?[1-9]\d*)?$/;
const WHOLE = /^(0|[1-9]\d{0,99})$/;

export const isFacts = (value: unknown): value is Facts =>
  Object(value) === value && !Array.isArray(value);

/** Return whether a value is facts of these names and no others. */
export const areOf = (value: unknown, names: readonly string[]): value is Facts =>
  isFacts(value) && Object.keys(value).length === names.length && names.every((name) => Object.hasOwn(value, name));

/** Return a text of a form; where none is named, of more than spaces. */
export function text(facts: Facts, name: string, form = /[^ ]/): string {
  const value = facts[name];
  require(typeof value === "string" && form.test(value), CODE, name);
  return value;
}

/** Return a list of texts. */
export function texts(facts: Facts, name: string): string[] {
  const value = facts[name];
  require(Array.isArray(value) && value.every((one) => typeof one === "string"), CODE, name);
  return value;
}

/** Return a list of names, one or more, all different. */
export function named(facts: Facts, name: string): string[] {
  const names = texts(facts, name);
  const different = names.length && new Set(names).size === names.length && names.every(Boolean);
  require(different, CODE, name);
  return names;
}

/** Return a decimal above 0 in billionths, exactly. */
export function nano(facts: Facts, name: string): bigint {
  const value = text(facts, name, DECIMAL);
  require(+value, CODE, name);
  const [before, after = ""] = value.split(".");
  return BigInt(before + after.padEnd(9, "0"));
}

/** Return the binary64 number nearest to a decimal. */
export function real(facts: Facts, name: string): number {
  const value = +text(facts, name, REAL);
  require(isFinite(value), CODE, name);
  return value;
}

/** Return a whole number of a range, given as a number or as a text. */
export function whole(facts: Facts, name: string, least: number | bigint, most: number | bigint): bigint {
  const value = facts[name];
  if (typeof value === "number" || (typeof value === "string" && WHOLE.test(value))) {
    const found = BigInt(value);
    if (found >= least && found <= most) return found;
  }
  return refuse(CODE, name);
}
