/** What a finished run is worth and what it gives away: figures, controls, who sees what, its graph, attacks, files. */

import * as api from "./api.js";
import { band, ranges } from "./charts.js";
import { el, facts, more, note, points as bullets } from "./dom.js";
import { network } from "./graph.js";
import { parties } from "./parties.js";
import { acts, button, field, fill, hint, p, percent, points, put, select, wrong } from "./parts.js";
import { progress } from "./watch.js";

/** What a run is compared with: less of the private data, or less made of the same. */
const CONTROLS = {
  "random-features": "noise as features", "label-propagation": "released labels, spread", "label-pool": "released labels, pooled",
  majority: "the most frequent class", "no-edges": "no connections", "random-graph": "made-up connections", "random-edges": "made-up edges",
  "public-only": "nothing private", "public-edges": "public edges", "public-part": "public parts",
};
/** What of a folder may be handed on. */
const HANDED = {
  run: "The card is what a reviewer reads. Only the folder public may be handed on.",
  release: "The card is what a reviewer reads. It and what was published may be handed on; what attacks found may not.",
  federation: "The card is what a reviewer reads. Keep the rest of the folder to yourself: your key is in it.",
  collection: "Reports have their noise already: train on them as often as you like.",
};

/** Show a finished folder; returns how to stop what it follows. */
export function result(part, app, path) {
  const stops = [];
  fill(part, "Reading the result.", () => api.get(`runs/${api.spelled(path)}`), (run) => card(run, app, stops));
  return () => stops.forEach((stop) => stop());
}

function card(run, app, stops) {
  const { result: outcome, kind } = run;
  const sections = [el("h2", {}, `Result: ${[outcome.method, outcome.data].filter(Boolean).join(" on ") || run.path}`)];
  if (outcome.accuracy) sections.push(worth(outcome));
  if (kind === "collection") sections.push(p(`${outcome.answered} of ${outcome.people} people have answered.`));
  if (outcome.guarantee?.void) sections.push(note("bad", "Nobody is protected by this run.", p(outcome.guarantee.void)));
  if (outcome.guarantee_sentence) sections.push(el("h3", {}, "What is promised"), el("p", { class: "sentence" }, outcome.guarantee_sentence));
  const bare = kind === "collection"
    ? "What the collector may learn about one person is limited as promised above, however it uses the reports."
    : "No picture is drawn of it: it states no guarantee.";
  sections.push(el("h2", {}, "What may be learned about one person"), run.parties ? parties(run.parties) : p(bare));
  if (kind === "run") sections.push(el("h2", {}, "On the graph"), drawn(run));
  if (["run", "federation", "release"].includes(kind)) sections.push(el("h2", {}, "Try an attack"), attacks(run, app, stops));
  sections.push(taken(run));
  return sections;
}

/** In one sentence and one chart: how often it is right, beside what could be had without the private data. */
function worth(outcome) {
  const { accuracy, controls = {}, best_control: best, ceiling, lift, rivals = {} } = outcome;
  const rows = [{ name: "this run", kind: "own", ...band(accuracy) }];
  for (const [name, one] of Object.entries(controls)) rows.push({ name: `with less: ${CONTROLS[name] ?? name}`, ...band(one) });
  for (const [name, one] of Object.entries(rivals)) rows.push({ name: `same protection: ${name}`, ...band(one) });
  if (ceiling) rows.push({ name: "a plain network, no protection", kind: "limit", ...band(ceiling) });
  const numbers = [["Predicted correctly", percent(accuracy.mean)]];
  if (controls[best]) numbers.push(["Best with less", percent(controls[best].mean)]);
  if (lift) numbers.push(["Lift", points(lift.mean)]);
  return [
    lift ? verdict(lift, outcome.lift_sentence) : [], el("dl", { class: "numbers" }, numbers.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
    ranges({ title: "People predicted correctly; the bar is where the true value lies in 95 of 100 such runs", unit: "%" }, rows),
    el("p", { class: "soft" }, outcome.measured_with ?? "Measured on true labels, without noise: for the owner of the run, not for handing on."),
    outcome.notes?.length ? more("Mind", bullets(outcome.notes)) : [],
  ].flat();
}

function verdict({ mean, low, high }, sentence = "") {
  const between = `The lift is ${points(mean)}, in 95 of 100 such runs between ${points(low)} and ${points(high)}.`;
  const [kind, head] = low > 0 ? ["good", `A lift of ${points(mean)}.`] : high < 0 ? ["bad", "Worse than with less."] : ["care", "No measurable lift."];
  return note(kind, head, p(between, ` ${sentence}`));
}

function drawn(run) {
  const place = el("div", {});
  const open = button("Draw the graph", () => fill(place, "Drawing.", () => api.get(`runs/${api.spelled(run.path)}/graph`), network));
  place.append(acts(open), hint("Who is predicted what, and where that is wrong; at most 3,000 people. What the data declare private is left out."));
  return place;
}

/** Attacks that fit this kind of folder: each is tried on the run and on a network without noise. */
function attacks(run, app, stops) {
  // First those on which the picture leans.
  const leans = JSON.stringify(run.parties ?? "");
  const proves = ({ name }) => Number(leans.includes(`--attack ${name}`));
  const offered = app.world.attacks.filter(({ on }) => on === run.kind).sort((a, b) => proves(b) - proves(a));
  const place = el("div", { role: "status" });
  let name = offered[0]?.name;
  const what = el("p", { class: "hint" });
  const tell = () => { what.textContent = offered.find((one) => one.name === name)?.summary ?? ""; };
  tell();
  // Of a release or a federation the attacker's finds are judged by the data behind it, which its owner has.
  const truth = el("div", {});
  let source = "";
  if (run.kind !== "run") {
    fill(truth, "Looking for the data.", () => api.get("folders"), ({ data }) => {
      const declared = data.filter((one) => one.state === "declared" && one.path !== run.path).map((one) => one.path);
      // A federation's data are a folder of each holder, all in one.
      const parents = declared.filter((path) => path.includes("/")).map((path) => path.slice(0, path.lastIndexOf("/")));
      const folders = run.kind === "federation" ? [...new Set(parents)] : declared;
      const all = [...folders.map((path) => [path, path]), ...app.world.named.map((one) => [`name:${one}`, one])];
      // A studio's folders begin with the name of their data.
      source = [...all.filter(([, name]) => run.path.includes(name)), ...all].map(([key]) => key)[0];
      return field("The true data, to judge by", select(all, source, (value) => { source = value; }));
    });
  }
  const go = async () => {
    try {
      const { id } = await api.post("jobs", { job: "attack", run: run.path, attack: name, ...(run.kind === "run" ? {} : { truth: source }) });
      stops.push(progress(place, id, { done: (job) => put(place, attacked(job.answer)) }));
    } catch (error) {
      put(place, wrong(error));
    }
  };
  if (!offered.length) return p("No attack is at hand for this kind of folder.");
  const choice = select(offered.map((one) => [one.name, one.name]), name, (value) => { name = value; tell(); }, { id: "attack" });
  const before = run.attacks.length ? p(`Tried before: ${run.attacks.join(", ")}; the figures are in the full report.`) : [];
  return el("div", {},
    p("An attack spends no budget. It is tried on this run and, beside it, on a plain network without any noise: what it finds there shows that the attack works."),
    before,
    el("label", { for: "attack" }, "Attack"), choice, what, truth, acts(button("Try it", go)), place);
}

function attacked({ attack, results }) {
  const { "without protection": open, ...own } = results;
  const rows = Object.entries(own).map(([name, { auc }]) => ({ name: `this run (${name})`, kind: "own", ...band(auc, 1) }));
  if (open) rows.push({ name: "without noise", ...band(open.auc, 1) });
  const first = Object.values(own)[0];
  const words = [
    `${attack}: ${first.target}. On this run ${first.auc.mean.toFixed(2)}, without noise ${open ? open.auc.mean.toFixed(2) : "not tried"};`,
    " 0.50 is guessing and 1.00 finds everything.",
  ];
  if (Number.isFinite(first.baseline)) {
    rows.push({ name: "without what is protected", value: first.baseline });
    words.push(` Without what is protected ${first.baseline.toFixed(2)}: ${first.baseline_note}.`);
  }
  const chart = ranges({ title: "How well the attack distinguishes (AUC)", unit: "AUC", digits: 2, ends: [0.4, 1] }, rows);
  return [note("", "What it found", p(words)), chart, more("Notes", bullets(Object.values(results).flatMap((one) => one.notes)))];
}

function taken(run) {
  const link = (name) => el("a", { class: "file", href: `api/runs/${api.spelled(run.path)}/files/${name}`, download: "" }, name);
  const where = [["The folder", el("code", {}, run.path)]];
  if (run.report) where.push(["The full report, for you alone", el("code", {}, run.report)]);
  return el("section", { class: "card files" }, el("h2", {}, "Take it with you"),
    p(HANDED[run.kind]), acts(run.files.map(link)), facts(where));
}
