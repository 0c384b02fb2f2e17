/** A person's numbers: typed one by one where they are few, pasted or loaded where they are many. */

import { el, tell, theirs, visible } from "./dom.js";
import { count } from "./numbers.js";

/** What is wrong with a number, or nothing. */
function fault(text, low, high) {
  const value = Number(text);
  if (!text.trim() || !Number.isFinite(value)) return `Write a number from ${low} to ${high}.`;
  return value < low || value > high ? `${text.trim()} is not from ${low} to ${high}.` : "";
}

// Nothing new is said before they go on: a line that comes up would move what they click.
/** While somebody types, what was wrong is looked at again. */
const again = (input, check) => input.hasAttribute("aria-invalid") && check();

/** An input for each number. */
export function typed({ names, low, high }, { hint }) {
  const rows = names.map((name, place) => {
    const wrong = el("p", { class: "wrong", id: `number-${place}-wrong` });
    const input = el("input", {
      id: `number-${place}`,
      inputmode: "decimal",
      autocomplete: "off",
      "aria-describedby": `number-${place}-wrong ${hint}`,
      input: () => again(input, check),
    });
    const check = () => tell(input, wrong, fault(input.value.replace(",", "."), +low, +high));
    return { input, check, part: el("div", {}, el("label", { for: input.id }, theirs(name)), input, wrong) };
  });
  return {
    parts: [
      el(
        "div",
        { class: "grid" },
        rows.map(({ part }) => part),
      ),
    ],
    read() {
      for (const { check } of rows) check();
      return rows.map(({ input }) => Number(input.value.replace(",", ".")));
    },
    load(values) {
      for (const [place, value] of inOrder(values, names).entries()) rows[place].input.value = value ?? "";
      for (const { check } of rows) check();
    },
  };
}

/** One text for all numbers. */
export function listed({ names, low, high }, { hint }) {
  const wrong = el("p", { class: "wrong", id: "numbers-wrong" });
  const area = el("textarea", {
    id: "numbers",
    spellcheck: "false",
    autocomplete: "off",
    "aria-describedby": `numbers-how numbers-wrong ${hint}`,
    input: () => again(area, check),
  });
  const how =
    `${count(names.length)} numbers in the order of the task, with spaces, commas or lines between them; ` +
    "or a line with all names and one with their numbers; or a file of yours, below.";
  const check = () => {
    const values = readNumbers(area.value, names);
    const bad = values.findIndex((one) => fault(String(one ?? ""), +low, +high));
    const short =
      values.length !== names.length && `These are ${count(values.length)} numbers of ${count(names.length)}.`;
    tell(area, wrong, short || (bad < 0 ? "" : `${visible(names[bad])}: ${fault(String(values[bad] ?? ""), +low, +high)}`));
    return values;
  };
  return {
    parts: [
      el("label", { for: "numbers" }, "Your numbers"),
      el("p", { class: "hint", id: "numbers-how" }, how),
      area,
      wrong,
    ],
    read: () => check().map(Number),
    load(values) {
      area.value = inOrder(values, names).join(", ");
      check();
    },
  };
}

/** Numbers of a file, which may be an object by names, in the order of the task. */
const inOrder = (values, names) => (Array.isArray(values) ? values : names.map((name) => values?.[name]));

/** The numbers of a text as texts: under a line of all names, in its order; else one after the other. */
export function readNumbers(text, names) {
  const lines = text.trim().split(/\r?\n/);
  const head = lines[0].split(",").map((one) => one.trim().replace(/^"(.*)"$/, "$1"));
  if (lines.length === 2 && names.every((name) => head.includes(name))) {
    const cells = lines[1].split(",");
    return names.map((name) => cells[head.indexOf(name)]?.trim());
  }
  return text.split(/[\s,;]+/).filter(Boolean);
}
