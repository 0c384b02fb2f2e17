/** The picture of who sees what: whoever and whatever is drawn can be pressed, and says what it may learn. */

import { el, facts, more, note, points } from "./dom.js";
import { button, put, save } from "./parts.js";

/**
 * The picture of one configuration, its parties and messages as buttons, and what the pressed one may learn.
 *
 * @param {Object} picture as `POST /api/parties` answers it
 */
export function parties(picture) {
  const drawn = el("div", { class: "parties" });
  const parsed = new DOMParser().parseFromString(picture.svg, "image/svg+xml").documentElement;
  drawn.append(document.importNode(parsed, true));
  const panel = el("div", { class: "card", role: "status" }, el("p", { class: "soft" }, "Press somebody, or a message, to read what they may learn."));
  const entries = new Map([...picture.parties, ...picture.arrows].map((item) => [item.key, item]));
  const names = new Map(picture.parties.map((party) => [party.key, party.name]));
  const title = (item) => item.name ?? `${names.get(item.source)} → ${names.get(item.target)}: ${item.kind}`;
  const chips = el("ul", { class: "chips no-print", "aria-label": "Everybody in the picture" });
  const choose = (key) => {
    for (const chip of chips.querySelectorAll("button")) chip.setAttribute("aria-pressed", String(chip.dataset.key === key));
    put(panel, el("h3", {}, title(entries.get(key))), ...told(entries.get(key)));
  };
  for (const item of picture.parties) chips.append(el("li", {}, button(item.name, () => choose(item.key), "small", { "data-key": item.key, "aria-pressed": "false" })));
  for (const node of drawn.querySelectorAll("[data-key]")) {
    const item = entries.get(node.getAttribute("data-key"));
    if (!item) continue;
    node.setAttribute("tabindex", "0");
    node.setAttribute("role", "button");
    // What is drawn stays part of the name, so that whoever says what they see can press it.
    node.setAttribute("aria-label", node.textContent.replace(/\s+/g, " ").trim());
    node.addEventListener("click", () => choose(item.key));
    node.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      choose(item.key);
    });
  }
  const all = more("All of it as text", [...entries.values()].map((item) => el("div", {}, el("h3", {}, title(item)), told(item))));
  const keep = button("Download the picture", () => save("who-sees-what.svg", picture.svg, "image/svg+xml"), "small");
  const empty = picture.void ? [note("bad", "Nobody is protected here.", el("p", {}, picture.void))] : [];
  return [...empty, drawn, chips, panel, all, keep];
}

function told(item) {
  const lines = [["Sees", item.sees], ["May learn", item.learns]];
  if (item.assumes.length) lines.push(["As long as", points(item.assumes.map((fact) => fact.text))]);
  if (item.shown_by.length) lines.push(["Shown by", points(item.shown_by.map((name) => el("code", {}, name)))]);
  return [facts(lines)];
}
