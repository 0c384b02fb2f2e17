/** What is asked, by whom, and what can be learned from the answers: of the task that was checked, in plain words. */

import { hex } from "./device.js";
import { el, facts, more, note, points, theirs } from "./dom.js";
import { count, decimal, moment, some, surest, surestBar, times } from "./numbers.js";

const WHOM = {
  lower: "For each pair of people only one is asked, so yours is about some of them.",
  both: "They are asked about you as well.",
  directed: "It is about links that begin at you; they are asked about theirs, which may be to you.",
};

/** From so many percent on a person is warned. */
const LITTLE = 99;

/** The title of a question. */
export const TITLES = {
  features: "Your numbers",
  label: "Which one you are",
  links: "Your connections",
  degree: "How many connections you have",
};

/** What one question asks, and what of it a report holds; texts, and texts of others as elements. */
export function question({ kind, width }, told, people) {
  if (kind === "features") {
    const which = width < told.names.length ? `${count(width)} of them, picked by a public lot` : "each of them";
    return [
      `${count(told.names.length)} numbers from ${told.low} to ${told.high}: `,
      some(told.names),
      `. Your report holds the word “high” or “low” for ${which}: likelier to be right than wrong, and never sure.`,
    ];
  }
  if (kind === "label") {
    return [
      "Which of these you are: ",
      some(told.classes, 12),
      ". Your report names one of them, and now and then a wrong one on purpose.",
    ];
  }
  if (kind === "links") {
    return (
      `Whom of ${count(people)} people you are connected with. Your report says yes or no about them, with wrong ` +
      `ones mixed in on purpose. ${WHOM[told.mode]}`
    );
  }
  return `How many people you are connected with. Your report holds a number near it. ${WHOM[told.mode]}`;
}

/** A key as people compare it: its first 8 bytes, in four groups. */
export const shortKey = (key) => hex(key.slice(0, 8)).match(/.{4}/g).join(" ");

/** Whether it matters who of two people answers a question. */
export const isAboutLinks = ({ kind }) => kind === "links" || kind === "degree";

/** What the guarantee of a question is about, and its epsilon: of both ends of a connection where both report it. */
export function bound({ fields, facts: told }, place) {
  const { kind, epsilon } = fields[place];
  if (kind === "features") return ["your numbers", epsilon];
  if (kind === "label") return ["which one you are", epsilon];
  // Of friends each names the other, also where a list holds what begins at its person.
  const isTwice = told.fields[place].mode !== "lower";
  const number = kind === "degree" ? ", by their number" : "";
  const from = number + (isTwice ? ", by your answer and theirs" : "");
  return [`whether one certain person is connected with you${from}`, isTwice ? 2n * epsilon : epsilon];
}

/** The whole of a task, for a person who has not agreed to anything yet. */
export function terms(task, hash) {
  const { facts: told, fields, people } = task;
  const least = Number(told.least);
  return [
    facts([
      ["Who asks", theirs(told.organiser)],
      ["What for", theirs(told.purpose)],
      ["Questions to", theirs(told.contact)],
      ["Signed by", [el("code", {}, shortKey(task.key)), ", a key that the organiser can confirm to you"]],
      ["When", `from ${moment(told.opens)} to ${moment(told.closes)}`],
      [
        "How many",
        `${count(people)} people are asked; nothing is passed on from fewer than ${count(least)} ${least === 1 ? "report" : "reports"}`,
      ],
    ]),
    el("h2", {}, "What is asked of you"),
    el(
      "ol",
      {},
      fields.map((one, place) =>
        el("li", {}, el("strong", {}, `${TITLES[one.kind]}. `), question(one, told.fields[place], people)),
      ),
    ),
    el("p", {}, "You may leave out any of them. Before anything leaves, you see the report and decide."),
    el("h2", {}, "How sure can anybody become about you?"),
    el(
      "p",
      {},
      "Say somebody wavers between two guesses about you, 50 to 50. Whatever else they know, each answer by itself ",
      "can make them this sure of one of them, and no surer:",
    ),
    el(
      "div",
      {},
      bounds(task).map(([what, nano]) => bar(what, nano)),
    ),
    bounds(task).some(([, nano]) => surestBar(nano) >= LITTLE)
      ? note(
          "care",
          "This protects you little.",
          el("p", {}, "Somebody can become nearly sure of you. Think before you answer all of it."),
        )
      : [],
    fields.some(isAboutLinks)
      ? el(
          "p",
          {},
          "Each single connection is protected like this. All of them together can tell more about you than any one.",
        )
      : [],
    sides(),
    more(
      "The promise in the organiser's signed words",
      points(told.guarantee.map(theirs)),
      el("p", {}, told.public.length ? "What is public anyway:" : "The organiser names nothing that is public anyway."),
      told.public.length ? points(told.public.map(theirs)) : [],
      el(
        "p",
        {},
        "This page checked the signature and, in whole numbers, that the noise keeps each epsilon. The task is " +
          "known by its hash, which covers the key that signed it:",
      ),
      el("p", {}, el("code", {}, hash)),
    ),
    el(
      "p",
      { class: "soft" },
      "This page comes from the collector. If you do not trust whoever runs it, answer with a program of your own: ",
      "it is the same standard and the same link.",
    ),
  ];
}

/** What each answer can tell, and what those about the same thing can tell together: words, and epsilon. */
export function bounds(task) {
  const { fields } = task;
  const each = fields.map((_, place) => bound(task, place));
  const together = (what, part) => {
    const own = each.filter((_, place) => part(fields[place]));
    return own.length > 1 ? [[what, own.reduce((sum, [, epsilon]) => sum + epsilon, 0n)]] : [];
  };
  return [
    ...each,
    ...together("your numbers and which one you are, by both answers", (one) => !isAboutLinks(one)),
    ...together("whether one certain person is connected with you, by list and number", isAboutLinks),
  ];
}

function bar(what, nano) {
  const said = `at most ${surest(nano)} sure`;
  return el(
    "div",
    { class: "bar" },
    el(
      "p",
      {},
      el("strong", {}, said),
      ` ${what.startsWith("whether") ? "" : "of "}${what} `,
      el("span", { class: "soft" }, `(epsilon ${decimal(nano)}: ${times(nano)})`),
    ),
    el("progress", { max: 100, value: surestBar(nano), "aria-label": `${what}: ${said}` }),
  );
}

const sides = () =>
  el(
    "div",
    { class: "pair" },
    el(
      "section",
      { class: "card" },
      el("h2", {}, "The collector learns"),
      points([
        "that you take part, and in which hour your report came",
        "which questions you left out",
        "one answer to each of the others, with errors mixed in on purpose. Asked again you give the same one, " +
          "so asking often tells no more",
        "when an answer changes from one round to the next, that it may have changed",
      ]),
    ),
    el(
      "section",
      { class: "card" },
      el("h2", {}, "The collector does not learn"),
      points([
        "your true answers: they stay in this browser",
        "which errors were mixed in: they follow from a secret that this browser keeps and no script can read",
        "your internet address afterwards: its program writes down none. Your network still sees that you were here",
      ]),
    ),
  );
