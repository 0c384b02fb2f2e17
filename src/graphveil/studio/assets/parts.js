/** Parts that several steps share: buttons, fields, files to take away, and waiting. */

import { copied, el, find, more, note } from "./dom.js";

export const button = (text, act, kind = "", more = {}) => el("button", { type: "button", class: kind, click: act, ...more }, text);
/** Let a part of the page hold these and nothing else. */
export const put = (part, ...children) => part.replaceChildren(...children.flat(Infinity));
export const p = (...children) => el("p", {}, children);
export const hint = (...children) => el("p", { class: "hint" }, children);
export const acts = (...buttons) => el("p", { class: "acts" }, buttons);
export const say = (text) => { find("status").textContent = text; };
export const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)}%`;
export const points = (share) => `${share > 0 ? "+" : share < 0 ? "−" : ""}${Math.abs(100 * share).toFixed(1)} points`;
/** An epsilon or a delta as people write it. */
export const short = (number) => (number === null || number === undefined ? "not limited" : String(Number(Number(number).toPrecision(6))));
export const list = (words) => (words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`);
export const seconds = (time) => (time < 90 ? `${Math.max(1, Math.round(time))} seconds` : `${Math.round(time / 60)} minutes`);

let fields = 0;
/** A control with its label and hint. */
export function field(name, control, hint = "") {
  const id = control.id || `field-${(fields += 1)}`;
  control.id = id;
  if (hint) control.setAttribute("aria-describedby", `${id}-hint`);
  return el("div", { class: "field" }, el("label", { for: id }, name), control, hint ? el("p", { class: "hint", id: `${id}-hint` }, hint) : []);
}

/** A choice among words: `options` are [value, text]. */
export function select(options, value, changed = () => {}, attributes = {}) {
  const entries = options.map(([one, text]) => el("option", { value: one, selected: one === value }, text));
  return el("select", { ...attributes, change: (event) => changed(event.currentTarget.value) }, entries);
}

/** A box to tick, with its words. */
export function box(words, checked, changed) {
  const control = el("input", { type: "checkbox", change: () => changed(control.checked) });
  control.checked = checked;
  return el("label", { class: "choice" }, control, el("span", {}, words));
}

/** Hand the browser a file that the page wrote. */
export function save(name, text, type = "text/plain") {
  const address = URL.createObjectURL(text instanceof Blob ? text : new Blob([text], { type }));
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
  say(`${name} is downloaded.`);
}

/** What a step ends in: files to download, [name, text], and the command that does the same. */
export function files(command, entries = []) {
  if (!command && !entries.length) return [];
  const line = command ? el("div", {}, p("The command that does the same:"), el("pre", { tabindex: "0" }, command)) : [];
  const copies = command ? [button("Copy the command", (event) => copied(event.currentTarget, command, say), "small")] : [];
  const links = entries.map(([name, text]) => button(`Download ${name}`, () => save(name, text), "small"));
  return el("section", { class: "card files" }, el("h2", {}, "Take it with you"), line, acts(links, copies));
}

/** Put what a promise brings into a part of the page: until then what is awaited, and if it fails why, with a way to try again. */
export async function fill(part, waiting, work, shows) {
  part.setAttribute("aria-busy", "true");
  put(part, el("p", { class: "waiting" }, waiting));
  try {
    const answer = await work();
    put(part, shows(answer));
    return answer;
  } catch (error) {
    put(part, wrong(error), acts(button("Try again", () => fill(part, waiting, work, shows))));
    return null;
  } finally {
    part.removeAttribute("aria-busy");
  }
}

/** A refusal as a note: the server's own sentence. */
export function wrong(error, head = "That did not work.") {
  if (!("code" in error)) console.error(error);
  const room = "Make room in the studio's folder, then try again. What was there before is whole.";
  if (error.code === "no-room") return note("bad", "The disk is full.", p(error.message), p(room));
  return note("bad", head, p("code" in error ? error.message : "This page failed. Reload it: your choices are saved."));
}

/** A table as a part that opens: what a chart draws, in numbers. */
export const behind = (content) => more("The numbers as a table", content);
