/** Numbers as people read them, rounded so that no promise sounds stronger than it is. */

import { theirs } from "./dom.js";

const NANO = 1e9;
/** Above this epsilon the factor, from 485 million on, would tell nobody anything, and words do. */
const TOLD = 20;
/** More than what floating-point numbers lose on the way. */
const SLACK = 1e-12;

/** Billionths of epsilon as a decimal; nothing is rounded. */
export function decimal(nano) {
  const digits = String(nano).padStart(10, "0");
  return `${digits.slice(0, -9)}.${digits.slice(-9)}`.replace(/\.?0+$/, "");
}

/** A chance in percent, rounded up: never 100% where it is less. */
export function up(chance) {
  for (let unit = 10; unit <= 1e6; unit *= 10) {
    const found = Math.ceil(100 * chance * unit * (1 + SLACK)) / unit;
    if (found < 100) return `${found}%`;
  }
  return "practically 100%";
}

/** A chance in percent, rounded down: never 0% where it is more. */
export function down(chance) {
  for (let unit = 10; unit <= 1e6; unit *= 10) {
    const found = Math.floor(100 * chance * unit * (1 - SLACK)) / unit;
    if (found > 0) return `${found}%`;
  }
  return "practically 0%";
}

const factor = (nano) => Math.exp(Number(nano) / NANO);

/** How sure a guess that was even before can become, rounded up. */
export const surest = (nano) => up(1 / (1 + 1 / factor(nano)));

/** The same as a number from 0 to 100, for a bar. */
export const surestBar = (nano) => 100 / (1 + 1 / factor(nano));

/** How many times as sure anybody can become, four digits, rounded up; in the words of the device in Python. */
export function times(nano) {
  if (Number(nano) > TOLD * NANO) return "up to practical certainty";
  const found = factor(nano) * (1 + SLACK);
  const unit = 10 ** (Math.floor(Math.log10(found)) - 3);
  const said = (Math.ceil(found / unit) * unit).toLocaleString("en", { maximumSignificantDigits: 4 });
  return `at most ${said} times as sure as before`;
}

export const count = (number) => number.toLocaleString("en");

/** A moment, where the person is. */
export const moment = (seconds) =>
  new Date(Number(seconds) * 1000).toLocaleString("en-GB", { dateStyle: "long", timeStyle: "short" });

/** The first of some names, and how many there are besides. */
export const some = (names, most = 6) => [
  names.slice(0, most).map((name, place) => [place ? ", " : "", theirs(name)]),
  names.length > most ? ` and ${count(names.length - most)} more` : "",
];
