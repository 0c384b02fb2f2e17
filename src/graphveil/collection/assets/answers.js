/** The form of a person's own answers: the device in this browser reads what is typed or loaded; it is sent nowhere. */

import { Refused } from "./collector.js";
import { el, tell, theirs, visible } from "./dom.js";
import { count } from "./numbers.js";
import { canonicalId } from "./people.js";
import { question, TITLES } from "./terms.js";

/** From so many numbers on they are pasted or loaded, not typed one by one. */
const TYPED = 50;

/** A question of the form failed; its message stands beside it. */
export class Unanswered extends Error {}

/**
 * The form of a task.
 *
 * @returns `parts`, elements; `read()`, values as the device takes them, or Unanswered with the first wrong input in
 * focus; `load(values)`, which fills in values of a file
 */
export function answers(task, number, names) {
  const asked = [];
  for (const [place, field] of task.fields.entries()) {
    const kind = field.kind === "degree" ? "links" : field.kind;
    // A degree is counted from the same list.
    if (!asked.some((one) => one.kind === kind))
      asked.push(framed(kind, field, task.facts.fields[place], task, number, names));
  }
  return {
    parts: asked.map(({ frame }) => frame),
    read() {
      const read = asked.map((one) => [one.kind, one.left.checked ? undefined : one.read(), one]);
      const wrong = asked.map(({ frame }) => frame.querySelector("[aria-invalid]")).find(Boolean);
      if (wrong) {
        wrong.focus();
        throw new Unanswered();
      }
      return Object.fromEntries(read.filter(([, value]) => value !== undefined));
    },
    load(values) {
      for (const one of asked) {
        one.left.checked = !(one.kind in values);
        one.left.dispatchEvent(new Event("change"));
        if (one.kind in values) one.load(values[one.kind]);
      }
    },
  };
}

/** A question with its words, its inputs, and a box to leave it out. */
function framed(kind, field, told, task, number, names) {
  const hint = `${kind}-hint`;
  const inner = made(kind, told, { number, names, hint });
  const body = el("div", {}, inner.parts);
  const change = () => {
    body.hidden = left.checked;
    if (left.checked) for (const one of body.querySelectorAll("[aria-invalid]")) one.removeAttribute("aria-invalid");
  };
  const left = el("input", { type: "checkbox", id: `${kind}-left`, change });
  const frame = el(
    "fieldset",
    { class: "card" },
    el("legend", {}, TITLES[kind]),
    el("p", { class: "hint", id: hint }, question(field, told, task.people)),
    body,
    el("label", { class: "choice" }, left, "Leave this out; the collector can see that you did"),
  );
  return { kind, frame, left, ...inner };
}

function made(kind, told, where) {
  if (kind === "label") return chosen(told, where);
  if (kind === "links") return connections(where);
  return told.names.length > TYPED ? listed(told, where) : typed(told, where);
}

/** One of some classes. */
function chosen({ classes }, { hint }) {
  const wrong = el("p", { class: "wrong", id: "label-wrong" });
  const boxes = classes.map((value) =>
    el("input", {
      type: "radio",
      name: "label",
      value,
      "aria-describedby": `${hint} label-wrong`,
      change: () => tell(boxes[0], wrong),
    }),
  );
  return {
    parts: [boxes.map((box) => el("label", { class: "choice" }, box, theirs(box.value))), wrong],
    read() {
      const found = boxes.find((box) => box.checked);
      tell(boxes[0], wrong, found ? "" : "Choose one, or leave this out.");
      return found?.value;
    },
    load(value) {
      for (const box of boxes) box.checked = box.value === value;
      tell(boxes[0], wrong, classes.includes(value) ? "" : "The file names none of these.");
    },
  };
}

/** Ends the name of a number that is asked for by its place in a range. */
const SCALE = /\((\S+) to (\S+) as 0 to 1\)$/;

/** What is wrong with the number of a name, or nothing. */
function fault(text, low, high, name) {
  const value = Number(text);
  if (!text.trim() || !Number.isFinite(value)) return `Write a number from ${low} to ${high}.`;
  if (value >= low && value <= high) return "";
  const [, least, most] = (SCALE.exec(name) ?? []).map(Number);
  const place = (value - least) / (most - least);
  const inRange = place >= 0 && place <= 1 ? ` From ${least} to ${most} it stands at ${Number(place.toFixed(3))}: write that.` : "";
  return `${text.trim()} is not from ${low} to ${high}.${inRange}`;
}

// Nothing new is said before they go on: a line that comes up would move what they click.
/** While somebody types, what was wrong is looked at again. */
const again = (input, check) => input.hasAttribute("aria-invalid") && check();

/** An input for each number. */
function typed({ names, low, high }, { hint }) {
  const rows = names.map((name, place) => {
    const wrong = el("p", { class: "wrong", id: `number-${place}-wrong` });
    const input = el("input", {
      id: `number-${place}`,
      inputmode: "decimal",
      autocomplete: "off",
      "aria-describedby": `number-${place}-wrong ${hint}`,
      input: () => again(input, check),
    });
    const check = () => tell(input, wrong, fault(input.value.replace(",", "."), +low, +high, name));
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
function listed({ names, low, high }, { hint }) {
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
    const faults = values.map((one, place) => fault(String(one ?? ""), +low, +high, names[place]));
    const bad = faults.findIndex(Boolean);
    const short =
      values.length !== names.length && `These are ${count(values.length)} numbers of ${count(names.length)}.`;
    tell(area, wrong, short || (bad < 0 ? "" : `${visible(names[bad])}: ${faults[bad]}`));
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
function readNumbers(text, names) {
  const lines = text.trim().split(/\r?\n/);
  const head = lines[0].split(",").map((one) => one.trim().replace(/^"(.*)"$/, "$1"));
  if (lines.length === 2 && names.every((name) => head.includes(name))) {
    const cells = lines[1].split(",");
    return names.map((name) => cells[head.indexOf(name)]?.trim());
  }
  return text.split(/[\s,;]+/).filter(Boolean);
}

/** Names that are offered while somebody types. */
const OFFERED = 12;

/** How a name is known, however it is spelled; nothing where it is nobody's. */
function formOf(typed) {
  try {
    return canonicalId(typed);
  } catch {
    return undefined;
  }
}

/** A person's connections, chosen by name from everybody who may take part; `names` are of everybody in the order of their numbers. */
function connections({ number, names, hint }) {
  const places = new Map(names.map((name, place) => [canonicalId(name), place]));
  const chosen = new Set();
  const wrong = el("p", { class: "wrong", id: "links-wrong" });
  const offered = el("datalist", { id: "links-offered" });
  const list = el("ul", { id: "links-chosen", "aria-label": "People you named" });
  const none = el("input", { type: "checkbox", id: "links-none", change: () => tell(input, wrong) });

  const offer = () => {
    const begun = input.value.toLowerCase();
    const found = begun ? names.filter((name, place) => place !== number && name.toLowerCase().includes(begun)) : [];
    offered.replaceChildren(...found.slice(0, OFFERED).map((value) => el("option", { value })));
  };
  const drop = (place, row) => {
    chosen.delete(place);
    row.remove();
    input.focus();
  };
  const add = (place) => {
    chosen.add(place);
    none.checked = false;
    const remove = el(
      "button",
      { type: "button", class: "small", click: () => drop(place, row) },
      "Remove",
      el("span", { class: "unseen" }, " ", theirs(names[place])),
    );
    const row = el("li", { class: "named" }, el("span", {}, theirs(names[place])), remove);
    list.append(row);
  };
  const take = () => {
    const place = places.get(formOf(input.value));
    const said =
      place === undefined
        ? "Nobody of that name takes part. Choose one of those offered."
        : place === number
          ? "That is you."
          : chosen.has(place)
            ? "They are on your list."
            : "";
    tell(input, wrong, said);
    if (!said) {
      add(place);
      input.value = "";
    }
    input.focus();
  };
  const input = el("input", {
    id: "links-name",
    list: "links-offered",
    autocomplete: "off",
    "aria-describedby": `links-wrong ${hint}`,
    input: offer,
    // Enter adds a name; it must not send the whole form on.
    keydown: (event) => event.key === "Enter" && (event.preventDefault(), take()),
  });

  return {
    parts: [
      el("label", { for: "links-name" }, "Name of a person you are connected with"),
      el("div", { class: "beside" }, input, el("button", { type: "button", click: take }, "Add")),
      offered,
      wrong,
      list,
      el("label", { class: "choice" }, none, "I am connected with nobody"),
    ],
    read() {
      const open = input.value.trim() && "Add this name, or clear it.";
      tell(
        input,
        wrong,
        open ||
          (chosen.size || none.checked ? "" : "Add the people you are connected with, or say that there is nobody."),
      );
      return [...chosen].sort((one, other) => one - other);
    },
    load(values) {
      chosen.clear();
      list.replaceChildren();
      const found = (Array.isArray(values) ? values : []).map((one) =>
        typeof one === "number" ? one : places.get(formOf(one)),
      );
      const right = Array.isArray(values) && found.every((place) => place !== number && names[place] !== undefined);
      if (right) new Set(found).forEach(add);
      none.checked = right && !found.length;
      tell(input, wrong, right ? "" : "The file names somebody who is nobody of this list, or you.");
    },
  };
}

/** Return the values of a person's own file (answers as JSON, or a table of numbers), by kind; refused with "bad-file". */
export async function readFile(file, task) {
  const text = (await file.text()).replace(/^\uFEFF/, "");
  const asked = task.facts.fields.find(({ kind }) => kind === "features");
  if (!file.name.endsWith(".json") && asked) return { features: readNumbers(text, asked.names).map(Number) };
  try {
    const values = JSON.parse(text);
    if (values && typeof values === "object" && !Array.isArray(values)) return values;
  } catch {
    // As any other file that is no object.
  }
  throw new Refused("bad-file");
}
