/** The report before it leaves, how whoever reads it must weigh it (by the task's thresholds), and what became of it. */

import { assigned } from "./device.js";
import { el, facts, more, note, table, theirs } from "./dom.js";
import { count, decimal, down, some, surest, up } from "./numbers.js";
import { bound, TITLES } from "./terms.js";

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
  const rest = limit === undefined ? 0n : limit - spent;
  const short = limit === undefined ? twice : nano > rest;
  const left =
    limit === undefined
      ? "none of yours; one collection of each organiser"
      : short
        ? `${decimal(rest > 0n ? rest : 0n)} of your ${decimal(limit)} left, less than the price`
        : `${decimal(rest - nano)} of your ${decimal(limit)} left after it`;
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
  /** It is booked, and the collector has not confirmed it. */
  failed: (head, words, code, bytes, again) => [
    el("h2", { id: "now-head" }, "Your report is recorded, and has not arrived yet"),
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

const WORD = 2 ** 64;
const DRAW = 2 ** 256;
/** Rows of a table that are shown at once. */
const ROWS = 12;

/** A part for each question: the answer that would leave, and how it reads. */
export async function readings(task, person, values, bits, names) {
  const parts = [];
  for (const [place, field] of task.fields.entries()) {
    const told = task.facts.fields[place];
    const inside =
      bits[place] === null
        ? [el("p", {}, "Your report leaves this out. That it does can be seen, and nothing else.")]
        : [...(await READ[field.kind](told, bits[place], { person, values, names })), weight(task, place)];
    parts.push(el("section", { class: "card reading" }, el("h3", {}, TITLES[field.kind]), inside));
  }
  return parts;
}

function weight(task, place) {
  const [what, epsilon] = bound(task, place);
  return el(
    "p",
    { class: "soft" },
    `Whatever else somebody knows: if they wavered 50 to 50 about ${what}, this makes them at most ` +
      `${surest(epsilon)} sure.`,
  );
}

const says = (...words) => el("p", { class: "says" }, "It says: ", el("strong", {}, words));
const reads = (...words) => el("p", {}, el("span", { class: "unseen" }, "How it reads: "), words);

const READ = { label, features, links, degree };

function label({ classes, share }, bits) {
  const answer = classes[parseInt(bits, 2) || 0];
  const other = Number(share) / WORD;
  const truth = 1 - (classes.length - 1) * other;
  return [
    says(theirs(answer)),
    reads(
      "It would say “",
      theirs(answer),
      `” with probability ${up(truth)} if that were true, and ${down(other)} if any other were. `,
      `Somebody who thought all ${count(classes.length)} equally likely would believe it to ${up(truth)}.`,
    ),
  ];
}

async function features({ names, low, high, threshold }, bits, { person, values }) {
  const asked = await assigned(person, names.length, bits.length);
  const least = Number(threshold) / WORD;
  const most = 1 - least;
  const given = Array.isArray(values.features) ? values.features : names.map((name) => values.features[name]);
  const chance = (column) => least + (most - least) * ((given[column] - low) / (high - low));
  const rows = asked.map((column, place) => {
    const says = bits[place] === "1" ? "high" : "low";
    const yours = says === "high" ? chance(column) : 1 - chance(column);
    return [names[column], String(given[column]), says, up(yours)];
  });
  const columns = ["number", "yours", "report says", "how likely it was to"];
  const others = names.length - asked.length;
  const shown = (part) =>
    table(
      "Yours is shown to you alone",
      columns,
      part.map(([name, ...cells]) => [theirs(name), ...cells]),
    );
  return [
    says(
      asked.length === 1
        ? [theirs(rows[0][0]), ` is ${rows[0][2]}`]
        : `${count(rows.filter((row) => row[2] === "high").length)} of ${count(rows.length)} numbers are high`,
    ),
    reads(
      `“High” is said with probability ${up(most)} at the very top, ${high}, and with ${down(least)} at the ` +
        `very bottom, ${low}; the other way round for “low”. `,
      others ? `The report says nothing of your other ${others === 1 ? "number" : `${count(others)} numbers`}.` : "",
    ),
    shown(rows.slice(0, ROWS)),
    rows.length > ROWS ? more(`The other ${count(rows.length - ROWS)}`, shown(rows.slice(ROWS))) : "",
  ];
}

function links({ mode, threshold }, bits, { person, names }) {
  const wrong = Number(threshold) / WORD;
  const named = names.filter((_, place) => bits[place] === "1");
  const about = mode === "lower" ? person.people - person.number - 1 : person.people - 1;
  // The last of the list is asked of nobody.
  if (!about) return [says("nobody"), reads("Of each pair of people the other one is asked: it answers for nobody.")];
  return [
    says(named.length ? some(named, ROWS) : "nobody"),
    reads(
      `It answers for ${about === 1 ? "one person" : `${count(about)} people`}. One you are connected with is named with probability ` +
        `${up(1 - wrong)}; one you are not is named all the same with ${down(wrong)}.`,
    ),
    named.length > ROWS ? more(`All ${count(named.length)}`, el("p", {}, some(named, named.length))) : "",
  ];
}

function degree({ digits, overflow, lowest, highest }, bits) {
  const said = (parseInt(bits, 2) || 0) + Number(lowest);
  const first = digits.length ? Number(digits[0]) : 0;
  // The noise is a difference of two geometric numbers of this ratio; its digits have the odds r, r^2, r^4 ...
  const ratio = digits.length ? first / (DRAW - first) : Number(overflow) / DRAW;
  const end = said === Number(lowest) || said === Number(highest);
  const exact = (1 - ratio) / (1 + ratio);
  return [
    says(count(said)),
    reads(
      end
        ? "This is the end of what it may say, for every number near it and beyond."
        : `It would say ${count(said)} with probability ${up(exact)} if that were true, and ` +
            `${down(exact * ratio)} if it were one more or one less.`,
    ),
  ];
}
