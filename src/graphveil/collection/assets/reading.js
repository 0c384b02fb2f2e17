/** What a report says of each question, and how whoever reads it must weigh that: by the task's thresholds. */

import { assigned } from "./device.js";
import { el, more, table, theirs } from "./dom.js";
import { count, down, some, surest, up } from "./numbers.js";
import { bound, TITLES } from "./terms.js";

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
      asked.length < names.length
        ? `The report says nothing of your other ${count(names.length - asked.length)} numbers.`
        : "",
    ),
    shown(rows.slice(0, ROWS)),
    rows.length > ROWS ? more(`The other ${count(rows.length - ROWS)}`, shown(rows.slice(ROWS))) : "",
  ];
}

function links({ mode, threshold }, bits, { person, names }) {
  const wrong = Number(threshold) / WORD;
  const named = names.filter((_, place) => bits[place] === "1");
  const about = mode === "lower" ? person.people - person.number - 1 : person.people - 1;
  return [
    says(named.length ? some(named, ROWS) : "nobody"),
    reads(
      `It answers for ${count(about)} people. One you are connected with is named with probability ` +
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
