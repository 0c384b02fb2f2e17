/** The report before it leaves, and what became of it. */

import { el, facts, more, note } from "./dom.js";
import { count, decimal } from "./numbers.js";

const hex = (bytes) =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0"))
    .join("")
    .replace(/(.{8})(?=.)/g, "$1 ");

const inBytes = (bytes) =>
  more(
    `The exact report: ${count(bytes.length)} bytes`,
    el("pre", { class: "bytes" }, hex(bytes)),
    el(
      "p",
      { class: "soft" },
      "A version, the task's hash, numbers that name report and browser, the answers, and your mark on all of it. ",
      "Its length is the same for everybody, whatever they answer.",
    ),
  );

const TWICE =
  "The same questions, asked anew, would be told twice: what both reports say together is more than either. If you " +
  "agree to that, set a limit of your own below.";

/** The exact report, its price, and the two ways on. */
export function report({ parts, bytes, nano, spent, limit, twice, changed, send, back }) {
  const left =
    limit === undefined
      ? "none of yours; one collection of each organiser"
      : `${decimal(limit > spent + nano ? limit - spent - nano : 0n)} of your ${decimal(limit)} left after it`;
  const short = limit === undefined ? twice : spent + nano > limit;
  return [
    el("h2", { id: "now-head" }, "This is your report"),
    el(
      "p",
      { class: "sentence" },
      "Nothing has left yet. Some of it may be wrong: that is the noise, and it protects you, because nobody " +
        "can tell which. ",
      "Your browser would say the same, however often it is asked.",
    ),
    parts,
    changed
      ? note(
          "care",
          "Your report differs from the last one.",
          el("p", {}, "Whoever reads both can see that something of yours may have changed."),
        )
      : [],
    facts([
      ["Price", `epsilon ${decimal(nano)}`, nano ? "" : ": these answers are paid for already"],
      ["Your limit", left],
    ]),
    short
      ? note(
          "bad",
          ...(limit === undefined
            ? ["You have answered this organiser already.", el("p", {}, TWICE)]
            : ["Your own limit does not pay for it.", el("p", {}, "Leave out a question, or raise your limit below.")]),
        )
      : [],
    inBytes(bytes),
    el(
      "div",
      { class: "acts" },
      el(
        "button",
        { type: "button", class: "main", id: "send", disabled: short, click: once(send) },
        "Send this report",
      ),
      el("button", { type: "button", id: "back", click: back }, "Back to my answers"),
    ),
    el(
      "p",
      { class: "hint" },
      "It is written down here first and sent then, so that a lost connection never costs you twice.",
    ),
  ];
}

/** A click that counts once. */
function once(work) {
  let begun = false;
  return () => {
    if (!begun) work();
    begun = true;
  };
}

export const sent = {
  /** The collector has it. */
  arrived: (epoch) => [
    el("h2", { id: "now-head" }, "Thank you: your report has arrived"),
    note(
      "good",
      `You have answered round ${epoch}.`,
      el(
        "p",
        {},
        "There is nothing more to do. Should a new round open, come back in this browser: ",
        "the same answers are told alike and cost nothing.",
      ),
    ),
  ],
  /** It is booked, and the collector has not said that it has it. */
  failed: (head, words, code, bytes, again) => [
    el("h2", { id: "now-head" }, "Your report is booked, and has not arrived yet"),
    note("care", `${head}.`, el("p", {}, words), el("p", { class: "soft" }, "Code: ", el("code", {}, code))),
    el(
      "p",
      {},
      "You can close this page and come back. The same bytes are sent again, at no further price, and count once.",
    ),
    inBytes(bytes),
    el(
      "div",
      { class: "acts" },
      el("button", { type: "button", class: "main", id: "again", click: once(again) }, "Send it again"),
    ),
  ],
};
