/** A person's connections, chosen by name from everybody who may take part. */

import { el, tell, theirs } from "./dom.js";
import { canonicalId } from "./people.js";

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

/** The list of connections; `names` are of everybody in the order of their numbers. */
export function connections({ number, names, hint }) {
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
