/** Elements of a page. What others wrote becomes text, never markup. */

/**
 * Return an element.
 *
 * @param {string} name of the element
 * @param {Object} told attributes; functions listen to the event of their name
 * @param {...(Node | string | Array)} children texts are texts
 */
export function el(name, told = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(told)) {
    if (typeof value === "function") made.addEventListener(key, value);
    else if (typeof value === "boolean") made.toggleAttribute(key, value);
    else made.setAttribute(key, value);
  }
  made.append(...children.flat(Infinity));
  return made;
}

// Letters that join (U+200C, U+200D) stay: Persian, many scripts of India and pictures are written with them.
const HIDDEN = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0]/gu;

/** A text of others where every letter can be seen: what would turn what stands beside it round, or hide, is a mark. */
export const visible = (text) => text.replace(/\s+/g, " ").replace(HIDDEN, "\uFFFD");

/** A text of others in a run of its own: whatever way it is written, the words of this page stay where they are. */
export const theirs = (text) => el("bdi", {}, visible(text));

export const find = (id) => document.getElementById(id);

/** Show an element with these children, or hide it where there are none. */
export function fill(id, ...children) {
  const parts = children.flat(Infinity);
  find(id).replaceChildren(...parts);
  find(id).hidden = !parts.length;
}

/** A list of facts: names and what is to say of them. */
export const facts = (pairs) =>
  el(
    "dl",
    { class: "facts" },
    pairs.map(([name, ...said]) => el("div", {}, el("dt", {}, name), el("dd", {}, said))),
  );

/** A list with a point for each text. */
export const points = (lines) =>
  el(
    "ul",
    {},
    lines.map((line) => el("li", {}, line)),
  );

/** A note on what happened: `kind` is good, care or bad; the head says it in words too. */
export const note = (kind, head, ...children) =>
  el("div", { class: `note ${kind}` }, el("p", {}, el("strong", {}, head)), children);

/** A part that opens when it is asked for. */
export const more = (head, ...children) => el("details", {}, el("summary", {}, head), children);

/** A table; columns that begin with "#" hold numbers. */
export function table(caption, columns, rows, foot = []) {
  const names = columns.map((name) => name.replace("#", ""));
  const kind = (place) => (columns[place].startsWith("#") ? { class: "n" } : {});
  const row = (cells) =>
    el(
      "tr",
      {},
      cells.map((cell, place) => el("td", { ...kind(place), "data-head": names[place] }, cell)),
    );
  const head = el(
    "tr",
    {},
    names.map((name, place) => el("th", { scope: "col", ...kind(place) }, name)),
  );
  const parts = [el("caption", {}, caption), el("thead", {}, head), el("tbody", {}, rows.map(row))];
  if (foot.length) parts.push(el("tfoot", {}, foot.map(row)));
  return el("div", { class: "scroll" }, el("table", {}, parts));
}

/** Say beside an input what is wrong with it, or that nothing is. */
export function tell(input, wrong, said = "") {
  wrong.textContent = said;
  if (said) input.setAttribute("aria-invalid", "true");
  else input.removeAttribute("aria-invalid");
}

/** Move to the head of a part: whoever uses a keyboard or hears the page is there at once. */
export function goTo(id) {
  const head = find(id).querySelector("h1, h2");
  head.tabIndex = -1;
  head.focus();
  head.scrollIntoView({ block: "start" });
}

/** Copy a line, and say so on the button that was pressed and, by `say`, to those who do not see it. */
export async function copied(button, line, say) {
  try {
    await navigator.clipboard.writeText(line);
    button.textContent = "Copied";
    say("Copied.");
  } catch {
    button.textContent = "Select it and copy it by hand";
  }
}
