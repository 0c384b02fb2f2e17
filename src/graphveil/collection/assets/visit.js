/** What all steps of the page share: this visit, the refusals, the accounts. */

import { Unanswered } from "./answers.js";
import { el, facts, fill, find, more, note, table, tell, theirs } from "./dom.js";
import { count, decimal } from "./numbers.js";
import { codeOf, WORDS } from "./refusals.js";

const STEPS = { read: 0, answer: 1, check: 2, send: 3 };
/**
 * Of this visit: what is kept, the task that was checked, its hash, who the person is, the opening, names of people,
 * the form as it was filled in, what shows the report anew when the limit has changed, the step, whether there is
 * nothing to do, and what the collector said last of its round.
 */
export const now = {
  home: undefined,
  task: undefined,
  hash: "",
  who: undefined,
  opening: undefined,
  names: [],
  form: [],
  again: undefined,
  step: "",
  waiting: false,
  round: undefined,
};

/** Do something; a refusal is told in words at the head of the page. */
export async function doing(what, work) {
  fill("refused");
  find("status").textContent = what;
  try {
    await work();
    find("status").textContent = "";
  } catch (error) {
    if (!(error instanceof Unanswered)) refuse(error);
    find("status").textContent = error instanceof Unanswered ? "Some answers are missing or wrong." : "";
  }
}

/** Tell a refusal in words. */
export function refuse(error) {
  const code = codeOf(error);
  const [head, words] = WORDS[code];
  fill("refused", note("bad", head, el("p", {}, words), el("p", { class: "soft" }, "Code: ", el("code", {}, code))));
  find("refused").scrollIntoView({ block: "start" });
}

/** Say which step this is. */
export function step(name) {
  now.again = undefined;
  now.step = name;
  now.waiting = false;
  find("steps").hidden = false;
  [...find("steps").children].forEach((one, place) =>
    place === STEPS[name] ? one.setAttribute("aria-current", "step") : one.removeAttribute("aria-current"),
  );
}

/** Take the limit that stands in an input; return whether it is one. */
export function takeLimit(id) {
  const right = now.home.limitTo(find(id).value.replace(",", "."));
  tell(find(id), find(`${id}-wrong`), right ? "" : "Write a number as 5 or 2.5, or nothing.");
  if (!right) find(id).focus();
  return right;
}

/** Whom this browser answers for, by the list whose hash the task holds; nothing where no question depends on it. */
export function answersAs(number) {
  const name = now.names[number];
  if (name === undefined) return [];
  const who = el("p", { class: "whom" }, "You answer as ", el("strong", {}, theirs(name)), ".");
  const stop =
    "If this is not you, stop: do not take part, and tell the organiser. Two people could tell of the same " +
    "connection, which protects it less.";
  return el("div", { class: "note care" }, who, el("p", {}, stop));
}

/** What was sent, spent and is left, of all collections of this site. */
export async function showAccounts() {
  const change = (event) => {
    event.preventDefault();
    if (takeLimit("limit")) doing("", () => Promise.all([showAccounts(), now.again?.()]));
  };
  const reports = await now.home.reports();
  if (now.who || reports.length) fill("spent", accounts(reports, await now.home.spent(), now.home.limit, change));
}

/** The table of all reports, and the person's own limit. */
function accounts(reports, spent, limit, change) {
  const row = ({ name, epoch, nano, body, at }) => [
    theirs(name),
    String(epoch),
    at ? `arrived ${new Date(at).toLocaleDateString("en-GB", { dateStyle: "medium" })}` : "recorded, not confirmed",
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
