/** The form of a person's own answers: the device in this browser reads what is typed or loaded; it is sent nowhere. */

import { connections } from "./connections.js";
import { el, tell, theirs } from "./dom.js";
import { listed, typed } from "./numbers-form.js";
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
