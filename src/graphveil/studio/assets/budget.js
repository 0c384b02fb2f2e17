/** Step 3: how much may be learned about one unit, in people's words; what that leaves; and the goal first. */

import * as api from "./api.js";
import { band, curve, ranges } from "./charts.js";
import { el, facts, more, note } from "./dom.js";
import { count } from "./numbers.js";
import { acts, box, button, field, files, fill, hint, p, percent, points, put, say, seconds, select, short, wrong } from "./parts.js";
import { advice, exposed, planned, request, TITLES } from "./trust.js";
import { finished } from "./results.js";
import { progress } from "./watch.js";

export const head = "Choose the budget";
export const lead = "The budget, called epsilon, limits what anybody can learn about one of your people from what is handed out. Nothing is spent on this page.";
export const needs = ["data", "method"];

export function render(body, app) {
  const [plan, bands, goal] = [0, 1, 2].map(() => el("div", {}));
  const method = app.method();
  let wait = 0;
  const replan = (delay = 500) => {
    clearTimeout(wait);
    wait = setTimeout(() => fill(plan, "Planning: this reads no private value and spends nothing.", () => planned(app), (answer) => priced(answer, app)), delay);
  };
  const again = (words) => {
    app.go("budget");
    say(words);
  };
  const stop = goalFirst(goal, app, again);
  put(body, 
    goal,
    el("h2", {}, "How much may be learned?"),
    hidden(app, again), app.budgets().map(([key, epsilon]) => slider(app, key, epsilon, replan)), beside(app, again),
    el("h2", {}, "What this promises"), plan,
    el("h2", {}, "What it may be good for"), bands,
  );
  if (!method.budgets.length) body.prepend(note("care", `${method.name} protects nothing: it has no budget.`));
  replan(0);
  fill(bands, "Looking for what is known.", () => evidence(app), (parts) => parts);
  return () => {
    clearTimeout(wait);
    stop();
  };
}

/** One budget: a slider over the library's own stops, its sentence, and the curve that it moves on. */
function slider(app, key, epsilon, moved) {
  const stops = app.world.stops;
  const far = (stop) => Math.abs(Math.log(stop.epsilon / epsilon));
  const nearest = stops.reduce((best, stop, place) => (far(stop) < far(stops[best]) ? place : best), 0);
  const unit = app.unitOf(key);
  const control = el("input", { type: "range", min: "0", max: String(stops.length - 1), step: "1" });
  const output = el("output", { class: "big" });
  const [figure, mark] = curve({
    title: "How often a guess about it can be right, of 100", unit: "right guesses of 100", ends: [45, 105],
    places: stops.map((stop) => stop.epsilon), values: stops.map((stop) => (stop.of ? Number(((100 * stop.right) / stop.of).toFixed(2)) : 100)),
  });
  const tell = () => {
    const stop = stops[Number(control.value)];
    const sure = stop.of ? stop.right / stop.of : 1;
    const words = stop.of ? `Of ${count(stop.of)} guesses about ${unit} at most ${count(stop.right)} are right.` : `Nearly every guess about ${unit} may be right.`;
    const strength = sure < 0.63 ? "strong protection" : sure < 0.9 ? "moderate protection" : "weak protection: a good guesser may be nearly sure";
    put(output, words, el("small", {}, `A coin would be right half the time. Epsilon ${short(stop.epsilon)}: ${strength}.`));
    control.setAttribute("aria-valuetext", `epsilon ${short(stop.epsilon)}. ${words}`);
    mark(stop.epsilon);
  };
  control.value = String(nearest);
  control.addEventListener("input", tell);
  control.addEventListener("change", () => {
    app.change({ settings: { ...app.choices.settings, [key]: stops[Number(control.value)].epsilon } });
    moved();
  });
  tell();
  const ends = el("div", { class: "ends" }, el("span", {}, "← stronger protection"), el("span", {}, "more accurate →"));
  return el("div", { class: "card" }, field(`About ${unit}`, control), ends, output, more("The whole curve", figure));
}

/** Whether a curator hides one connection or a whole person, where the method can do both: the first decision, before any epsilon. */
function hidden(app, again) {
  const unit = app.method().settings.find((one) => one.key === "unit");
  if (!unit || !["edge", "node"].every((name) => unit.allowed.includes(name))) return [];
  const changed = (value) => {
    app.change({ settings: { ...app.choices.settings, unit: value || undefined } });
    again("What is hidden has changed.");
  };
  const units = [["", "one connection between two people"], ["node", "one whole person, with all their connections"]];
  return field("What shall be hidden?", select(units, app.choices.settings?.unit ?? "", changed),
    "A whole person is much more than a connection: the same epsilon then costs more accuracy.");
}

/** What the method leaves open unless somebody protects it too. */
function beside(app, again) {
  const open = app.method().budgets.filter((one) => one.default === "inf");
  return open.map(({ key }) => box(`Protect ${app.unitOf(key)} too`, typeof app.choices.settings?.[key] === "number", (on) => {
    app.change({ settings: { ...Object.fromEntries(app.budgets()), ...app.choices.settings, [key]: on ? 1 : undefined } });
    again("The budgets have changed.");
  }));
}

/** What the plan says: the guarantee, what it leans on, time, and files. */
function priced({ answer, command, config }, app) {
  const parts = spent(answer).map(([unit, epsilon]) => `epsilon ${short(epsilon)} for ${unit}`);
  const { delta } = answer.guarantee;
  if (delta) parts.push(`delta ${short(delta)}: the chance, at most, that the limit does not hold`);
  const lines = [
    ["In plain words", answer.adversary ?? "nothing is protected"],
    ["It spends", parts.join("; ") || "nothing"],
    ["It assumes", el("ul", {}, answer.guarantee.assumes.map((line) => el("li", {}, line)))],
    ["Takes", `about ${seconds(answer.seconds)}, ${Math.ceil(answer.memory_mb)} MB of memory`],
  ];
  if (answer.advice.length) lines.push(["Mind", el("ul", {}, answer.advice.map((line) => el("li", {}, line)))]);
  const entries = [["plan.md", written(answer, command, app)], ["plan.json", `${JSON.stringify(answer, null, 2)}\n`]];
  if (config) entries.push(["config.toml", config]);
  return [
    exposed(answer), facts(lines), more("The guarantee, word for word", el("p", { class: "sentence" }, answer.guarantee_sentence)),
    acts(button("Go on to run it", () => app.go("run"), "main")), files(command, entries),
  ];
}

/** What a plan spends, without the parts that it does not use. */
const spent = ({ epsilon }) => Object.entries(epsilon).filter(([, amount]) => amount !== 0);

/** The plan as a page that can be handed on. */
function written(answer, command, app) {
  const lines = [
    `# Plan: ${answer.method} on ${answer.data}`, "", `Whom we trust: ${TITLES[app.choices.trust] ?? app.choices.trust}.`, "", `> ${answer.guarantee_sentence}`, "",
    `In plain words: ${answer.adversary}.`, "", "| what | epsilon |", "| --- | --- |",
    ...spent(answer).map(([unit, epsilon]) => `| ${unit} | ${short(epsilon)} |`), "",
    "Assumes:", "", ...answer.guarantee.assumes.map((line) => `- ${line}`), "",
    ...(answer.advice.length ? ["Mind:", "", ...answer.advice.map((line) => `- ${line}`), ""] : []),
    `It takes about ${seconds(answer.seconds)}. Nothing has been spent for this plan.`, "", "```sh", command, "```", "",
  ];
  return lines.join("\n");
}

/** Bands of lift and accuracy, each with its own axis: from graphs that are alike, from rehearsal, and from finished runs. */
async function evidence(app) {
  const [{ answer }, runs] = await Promise.all([advice(app.choices.data), finished(app)]);
  const entry = answer.advice.find((one) => one.trust === app.choices.trust);
  const parts = [];
  const like = app.choices.method === entry?.method ? entry.alike : [];
  const alike = like.map(({ graph, epsilon, lift }) => ({ name: `${graph}, epsilon ${short(epsilon)}`, low: 100 * lift, high: 100 * lift }));
  const own = runs.filter((run) => run.data === app.named() && run.accuracy);
  const lifts = own.filter((run) => run.lift).map((run) => ({ name: titled(run), kind: "own", ...band(run.lift) }));
  const gained = "Lift: how many more of 100 people are predicted rightly thanks to the private data";
  if (alike.length + lifts.length) parts.push(ranges({ title: gained, unit: "points", ends: [0] }, [...alike, ...lifts]));
  const right = own.map((run) => ({ name: titled(run), kind: "own", ...band(run.accuracy) }));
  if (own.length) parts.push(ranges({ title: "Accuracy of finished runs on these data", unit: "%" }, right));
  const attacked = own.flatMap((run) => Object.entries(run.attacks ?? {}).map(([name, outcome]) => ({ run, name, outcome }))).filter(({ outcome }) => outcome?.auc);
  const tries = attacked.map(({ run, name, outcome }) => ({ name: `${name}, ${titled(run)}`, kind: "own", ...band(outcome.auc, 1) }));
  const title = "What attacks on finished runs found: 0.50 is guessing, 1.00 is everything";
  if (tries.length) parts.push(ranges({ title, unit: "AUC", digits: 2, ends: [0.5, 1] }, tries));
  if (alike.length) parts.unshift(p("Graphs named below are public ones like yours, each measured at one epsilon. They are experience and no promise."));
  if (!parts.length) parts.push(p("Nothing is known yet for this method and these data. Name a goal above to have it rehearsed on made graphs."));
  return parts;
}

const titled = (run) => `${run.method}, epsilon ${short(run.epsilon)}`;

/** "I need 80%": a job that rehearses until it knows the smallest epsilon, or that there is none. */
function goalFirst(part, app, use) {
  const goal = app.choices.goal;
  let stop = () => {};
  const amount = el("input", { type: "number", min: "1", max: "99", step: "1", value: String(goal?.amount ?? 80), inputmode: "numeric" });
  let what = goal?.what ?? "accuracy";
  const kind = select([["accuracy", "% of people predicted rightly (accuracy)"], ["lift", "points gained by the private data (lift)"]], what, (value) => {
    what = value;
    if (value === "lift" && Number(amount.value) > 30) amount.value = "2";
  });
  const answer = el("div", { role: "status" });
  const start = async (event) => {
    event.preventDefault();
    const number = Number(amount.value);
    if (!(number > 0 && number < 100)) return put(answer, note("bad", "Type a number from 1 to 99."));
    try {
      const { id } = await api.post("jobs", { job: "plan", ...request(app), settings: {}, want: `${what}=${number / 100}` });
      await app.change({ goal: { what, amount: number, job: id } });
      look(id);
    } catch (error) {
      put(answer, wrong(error));
    }
  };
  const look = (id) => {
    stop();
    stop = progress(answer, id, { done: (job) => put(answer, reached(job.answer.reached, app, use)) });
  };
  const form = el("form", { submit: start },
    el("div", { class: "row" }, field("I need", amount), field("of what", kind)), acts(el("button", {}, "Look for the smallest budget")),
    hint("Rehearsed on made graphs that look like yours as far as is public: no private value is read. It takes a minute or two."));
  put(part, more("Start from a goal instead: “I need 80%”", form, answer));
  if (goal?.job) {
    part.querySelector("details").open = true;
    look(goal.job);
  }
  return () => stop();
}

function reached(outcome, app, use) {
  const { low, high } = outcome.epsilon;
  const wanted = outcome.goal.what === "lift" ? points(outcome.goal.least) : percent(outcome.goal.least, 0);
  const unit = outcome.goal.what === "lift" ? "points" : "%";
  const tried = outcome.tried.map((one) => ({ name: `epsilon ${short(one.epsilon)}`, low: 100 * one.low, high: 100 * one.high, kind: "own" }));
  const goal = { name: "your goal", value: 100 * outcome.goal.least, kind: "limit" };
  const chart = ranges({ title: "What the rehearsals gave at each epsilon", unit }, [...tried, goal]);
  const key = ["epsilon_a", "epsilon"].find((name) => app.method().budgets.some((budget) => budget.key === name)) ?? app.method().budgets[0]?.key;
  const take = () => {
    app.change({ settings: { ...app.choices.settings, [key]: high } });
    use("The budget is set to what the goal needs.");
  };
  if (high !== null) {
    const sure = `Of the epsilons that were tried ${short(high)} is the smallest that reaches ${wanted} in every rehearsal.`;
    return [note("good", sure, acts(button(`Use epsilon ${short(high)}`, take, "main"))), chart];
  }
  const words = low === null
    ? `None: no epsilon that was tried reaches ${wanted}, in any rehearsal.`
    : `Do not count on ${wanted}. The best rehearsal reaches it from epsilon ${short(low)} on, the worst at none.`;
  return [note("care", words, p("Ask for less, or trust somebody more.")), chart];
}
