/** The picture of who sees what: whoever and whatever is drawn can be pressed, and says what it may learn. */

import { el, facts, more, note, points } from "./dom.js";
import { button, p, put, save } from "./parts.js";

/** The picture of one configuration, and beside it what the pressed party or message may learn. */
export function parties(picture) {
  const svg = document.importNode(new DOMParser().parseFromString(picture.svg, "text/html").body.firstElementChild, true);
  const panel = el("div", { class: "card no-print", role: "status" });
  const entries = new Map([...picture.parties, ...picture.arrows].map((item) => [item.key, item]));
  const names = new Map(picture.parties.map((party) => [party.key, party.name]));
  const title = (item) => item.name ?? `${names.get(item.source)} ${item.mutual ? "↔" : "→"} ${names.get(item.target)}`;
  const chips = el("ul", { class: "chips no-print", "aria-label": "Everybody in the picture" });
  const choose = (key) => {
    for (const chip of chips.querySelectorAll("button")) chip.setAttribute("aria-pressed", String(chip.dataset.key === key));
    for (const [node, own] of drawn) node.classList.toggle("chosen", own === key);
    panel.classList.remove("no-print");
    put(panel, el("h3", {}, title(entries.get(key))), meaning(entries.get(key)));
  };
  for (const { key, name } of picture.parties) chips.append(el("li", {}, button(name, () => choose(key), "small", { "data-key": key, "aria-pressed": "false" })));
  const drawn = [...svg.querySelectorAll("[data-party], [data-arrow]")].map((node) => [node, node.dataset.party ?? node.dataset.arrow]);
  for (const [node, key] of drawn) {
    node.addEventListener("click", () => choose(key));
    node.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      choose(key);
    });
  }
  put(panel, el("p", { class: "soft" }, "Click a party, or a message, for what they see, and what they may learn about one person."));
  const all = more("All of it as text", [...entries.values()].map((item) => [el("h3", {}, title(item)), meaning(item)]));
  const keep = button("Download the picture", () => save("who-sees-what.svg", new XMLSerializer().serializeToString(svg), "image/svg+xml"), "small no-print");
  const empty = picture.void ? note("bad", "Nobody is protected here.", p(picture.void)) : [];
  return [empty, el("div", { class: "seen" }, svg, el("div", {}, chips, panel, all, keep))].flat();
}

function meaning(item) {
  const lines = [["Sees", item.sees], ["May learn", item.learns]];
  if (item.assumes.length) lines.push(["Assumes", points(item.assumes.map((fact) => fact.text))]);
  if (item.shown_by.length) lines.push(["Shown by", points(item.shown_by.map((name) => el("code", {}, name)))]);
  return facts(lines);
}
