/** What was sent, spent and is left, of all collections of this site. */

import { el, facts, more, table, theirs } from "./dom.js";
import { count, decimal } from "./numbers.js";

/** The table of all reports, and the person's own limit. */
export function accounts(reports, spent, limit, change) {
  const row = ({ name, epoch, nano, body, at }) => [
    theirs(name),
    String(epoch),
    at ? `arrived ${new Date(at).toLocaleDateString("en-GB", { dateStyle: "medium" })}` : "booked, not confirmed",
    body.length === 2 ? "1 byte" : `${count(body.length / 2)} bytes`,
    decimal(nano),
  ];
  return [
    el("h2", { id: "spent-head" }, "What you sent, spent and have left"),
    reports.length
      ? table(
          "Reports from this browser to this site",
          ["Collection", "#Round", "State", "#Answers", "#Epsilon"],
          reports.map(row),
        )
      : [],
    facts([
      ["Spent", `epsilon ${decimal(spent)}`],
      [
        "Left",
        limit === undefined
          ? "you have set none: one collection of each organiser"
          : `${decimal(limit > spent ? limit - spent : 0n)} of ${decimal(limit)}`,
      ],
    ]),
    more(
      "Change my limit",
      el(
        "form",
        { novalidate: true, submit: change },
        el("label", { for: "limit" }, "Epsilon that all my reports from this site may cost; empty: one collection of each organiser"),
        el("input", {
          id: "limit",
          inputmode: "decimal",
          autocomplete: "off",
          value: limit === undefined ? "" : decimal(limit),
          "aria-describedby": "limit-wrong",
        }),
        el("p", { class: "wrong", id: "limit-wrong" }),
        el("div", { class: "acts" }, el("button", {}, "Keep")),
      ),
    ),
    el(
      "p",
      { class: "soft" },
      "Epsilon counts how much your reports can tell about you in all. Reports to other sites or from other " +
        "browsers are not in it. ",
      "Keep this site's data: without the secret, this browser cannot take part again.",
    ),
  ];
}
