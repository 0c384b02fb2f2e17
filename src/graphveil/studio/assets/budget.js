/** Step 3: how much may be learned about one unit, in people's words; what that leaves; and the goal first. */

import * as api from "./api.js";
import { at, band, spread } from "./charts.js";
import { el, facts, more, note } from "./dom.js";
import { count } from "./numbers.js";
import { acts, button, field, files, fill, hint, list, p, percent, points, put, say, seconds, select, short, wrong } from "./parts.js";
import { advice, exposed, optionsOf, planned, request, TITLES } from "./trust.js";
import { finished } from "./results.js";
import { progress } from "./watch.js";

export const head = "Choose the budget";
export const lead = "The budget, called epsilon, limits what anybody can learn about one of your people from what is handed out. Nothing is spent on this page.";
export const needs = ["data", "method"];

export function render(body, app) {
  const [plan, bands, goal] = [0, 1, 2].map(() => el("div", {}));
  const method = app.method();
  // Whether a connection or a whole person is hidden is the first decision, before any epsilon.
  const first = ({ key, allowed }) => key === "unit" && ["edge", "node"].every((name) => allowed.includes(name));
  // Of charts on which the budget is marked, where it is the only one.
  const marks = [];
  let wait = 0;
  const replan = (delay = 500) => {
    clearTimeout(wait);
    wait = setTimeout(() => fill(plan, "Planning: this reads no private value and spends nothing.", () => planned(app), (answer) => priced(answer, app)), delay);
  };
  const again = (words) => {
    app.go("budget");
    say(words);
  };
  const draw = () => {
    marks.length = 0;
    return fill(bands, "Looking for public figures.", () => evidence(app, marks), (parts) => {
      const [[, epsilon] = [], ...others] = app.budgets();
      for (const mark of epsilon && !others.length ? marks : []) mark(epsilon);
      return parts;
    });
  };
  draw();
  const stop = goalFirst(goal, app, again, draw);
  put(body, 
    goal,
    el("h2", {}, "How much may be learned?"),
    form(app, replan, again, first),
    app.budgets().map(([key, epsilon], _, all) => slider(app, key, epsilon, replan, all.length > 1 ? [] : marks)),
    el("h2", {}, "What it may gain"), bands,
    more("More settings", hint("What is left empty is as advised. All of it is in config.toml and in the command."), form(app, replan, again, (one) => !first(one))),
    el("h2", {}, "What this promises"), plan,
  );
  replan(0);
  return () => {
    clearTimeout(wait);
    stop();
  };
}

/** One budget: a slider over the library's own stops, its sentence, and the band below the limit of its guarantee. */
function slider(app, key, epsilon, moved, marks) {
  const stops = app.world.stops;
  // What lies between two stops is described by the one that promises less.
  const above = stops.findIndex((stop) => stop.epsilon >= epsilon);
  const unit = app.unitOf(key);
  const control = el("input", { type: "range", min: "0", max: String(stops.length - 1), step: "1" });
  const output = el("output", { class: "big" });
  const limit = stops.map(({ epsilon: place, right, of }) => ({ epsilon: place, low: 50, high: of ? (100 * right) / of : 100 }));
  const [figure, mark] = spread({
    title: "How often a guess about it may be right", unit: "guesses of 100", ends: [50, 100], places: stops.map((stop) => stop.epsilon),
  }, [{ name: "from a coin toss to the most that any attack reaches", points: limit, kind: "own" }]);
  const tell = () => {
    const stop = { ...stops[Number(control.value)], ...(typed === null ? {} : { epsilon: typed }), ...(above < 0 && typed !== null ? { of: null } : {}) };
    const sure = stop.of ? stop.right / stop.of : 1;
    const words = stop.of ? `Of ${count(stop.of)} guesses about ${unit} at most ${count(stop.right)} are right.` : `Nearly every guess about ${unit} may be right.`;
    const strength = sure < 0.63 ? "strong protection" : sure < 0.9 ? "moderate protection" : "weak protection: an attacker may be nearly sure";
    put(output, words, el("small", {}, `A coin toss is right half the time. Epsilon ${short(stop.epsilon)}: ${strength}.`));
    control.setAttribute("aria-valuetext", `epsilon ${short(stop.epsilon)}. ${words}`);
    for (const one of [mark, ...marks]) one(stop.epsilon);
  };
  let typed = epsilon;
  control.value = String(above < 0 ? stops.length - 1 : above);
  control.addEventListener("input", () => {
    typed = null;
    tell();
  });
  control.addEventListener("change", () => {
    app.change({ settings: { ...app.choices.settings, [key]: stops[Number(control.value)].epsilon } });
    for (const same of document.querySelectorAll(`[data-key=${key}]`)) same.value = short(stops[Number(control.value)].epsilon);
    moved();
  });
  tell();
  const ends = el("div", { class: "ends" }, el("span", {}, "← stronger protection"), el("span", {}, "more accurate →"));
  return el("div", { class: "card" }, field(`About ${unit}`, control), ends, output, figure);
}

/** Everything else that the command takes, from the library's own list: the plan judges what is typed. */
function form(app, replan, again, wanted) {
  const method = app.method();
  const set = (group, key) => (value) => {
    const text = value.trim();
    app.change({ [group]: { ...app.choices[group], [key]: text && Number.isFinite(Number(text)) ? Number(text) : text || undefined } });
    if (method.budgets.some((one) => one.key === key) || key === "unit") again("The settings have changed.");
    else replan(0);
  };
  const control = (group) => ({ key, default: usual, allowed, help }) => {
    const [value, blank] = [String(app.choices[group]?.[key] ?? ""), usual === null ? "as advised" : String(usual)];
    const input = allowed.length
      ? select([["", blank], ...allowed.map((name) => [name, name])], value, set(group, key))
      : el("input", { value, placeholder: blank, spellcheck: "false", autocomplete: "off", "data-key": key, change: (event) => set(group, key)(event.target.value) });
    return field(key === "unit" ? "What to hide (unit)" : key, input, help);
  };
  const entries = [["settings", method.budgets], ["options", optionsOf(method)], ["settings", method.settings]];
  return el("div", { class: "row" }, entries.map(([group, all]) => all.filter(wanted).map(control(group))));
}

/** What the plan says: the guarantee, what it leans on, time, and files. */
function priced({ answer, command, config }, app) {
  const parts = spent(answer).map(([unit, epsilon]) => `epsilon ${short(epsilon)} for ${unit}`);
  const { delta } = answer.guarantee;
  if (delta) parts.push(`delta ${short(delta)}: the largest chance that the limit does not hold`);
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
const spent = ({ epsilon }) => Object.entries(epsilon).filter(([, amount]) => amount > 0);

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

/** What is known over the whole slider, one unit an axis: from public graphs that are alike, a goal's rehearsals and finished runs. */
async function evidence(app, marks) {
  const { data, trust, method, goal, settings } = app.choices;
  const past = goal?.job ? api.get(`jobs/${goal.job}`).catch(() => null) : null;
  const [{ answer }, runs, job] = await Promise.all([advice(data), finished(app), past]);
  const entry = answer.advice.find((one) => one.trust === trust);
  const unit = settings?.unit ?? app.method().settings.find((one) => one.key === "unit")?.default ?? "edge";
  const apply = (one) => one.method === method && [null, unit].includes(one.unit) && app.budgets().length === 1;
  const measured = entry.measured.filter(apply);
  // Of the same unit of privacy alone: one person and one connection share no axis.
  const own = runs.filter((run) => run.data === app.named() && run.method === method && Number.isFinite(run.epsilon)
    && (run.settings?.unit ?? null) === (settings?.unit ?? null));
  const places = app.world.stops.map((stop) => stop.epsilon);
  const drawn = (title, unit, rows, more = {}) => {
    if (!rows.some((row) => row.points.length)) return [];
    const [figure, mark] = spread({ title, unit, places, ...more }, rows.filter((row) => row.points.length));
    marks.push(mark);
    return figure;
  };
  const rowsOf = (what) => {
    const seen = measured.filter((one) => typeof one[what] === "number");
    const graphs = [...new Set(seen.map((one) => one.graph))];
    const lines = graphs.map((name) => seen.filter(({ graph }) => graph === name).map((one) => ({ epsilon: one.epsilon, low: one[what], high: one[what] })));
    const epsilons = [...new Set(seen.map((one) => one.epsilon))].sort((a, b) => a - b);
    const alike = epsilons.map((epsilon) => {
      const values = lines.map((line) => at(line, epsilon)?.low).filter(Number.isFinite);
      return { epsilon, low: Math.min(...values), high: Math.max(...values) };
    });
    const tried = goal?.what === what ? (job?.answer?.reached?.tried ?? []) : [];
    return [
      { name: `measured on public graphs like yours: ${list(graphs)}`, points: alike },
      { name: "rehearsed on synthetic graphs", kind: "own", points: tried.map(({ epsilon, low, high }) => ({ epsilon, low: 100 * low, high: 100 * high })) },
      { name: "finished runs on these data", kind: "done", points: own.filter((run) => run[what]).map((run) => ({ epsilon: run.epsilon, ...band(run[what]) })) },
    ];
  };
  const tries = own.flatMap((run) => Object.values(run.attacks ?? {}).filter((one) => one?.auc).map(({ auc }) => ({ epsilon: run.epsilon, ...band(auc, 1) })));
  const parts = [
    drawn("Right predictions of 100 (accuracy)", "%", rowsOf("accuracy")),
    drawn("Lift: how many more of 100 are right thanks to the private data", "points", rowsOf("lift"), { ends: [0] }),
    drawn("What attacks on finished runs found: 0.50 is guessing, 1.00 is everything", "AUC",
      [{ name: "finished runs on these data", kind: "done", points: tries }], { digits: 2, ends: [0.5, 1] }),
  ].flat();
  const words = measured.length
    ? "Other graphs promise nothing about yours; lines between measured epsilons are straight, and where nothing is drawn, nothing was measured."
    : "This method was not measured on graphs like yours. Name a goal above to have it rehearsed on synthetic graphs.";
  return [p(words), el("div", { class: "row" }, parts)];
}

/** "I need 80%": a job that rehearses until it knows the smallest epsilon, or that there is none. */
function goalFirst(part, app, use, draw) {
  const goal = app.choices.goal;
  let stop = () => {};
  const amount = el("input", { type: "number", min: "1", max: "99", step: "1", value: String(goal?.amount ?? 80), inputmode: "numeric" });
  let what = goal?.what ?? "accuracy";
  const kind = select([["accuracy", "% of people predicted correctly (accuracy)"], ["lift", "points gained by the private data (lift)"]], what, (value) => {
    what = value;
    if (value === "lift" && Number(amount.value) > 30) amount.value = "2";
  });
  const degree = el("input", { type: "number", min: "0.1", step: "any", inputmode: "decimal", placeholder: "not public" });
  const answer = el("div", { role: "status" });
  const start = async (event) => {
    event.preventDefault();
    const number = Number(amount.value);
    if (!(number > 0 && number < 100)) return put(answer, note("bad", "Type a number from 1 to 99."));
    try {
      const { id } = await api.post("jobs", { job: "plan", ...request(app), settings: unpriced(app), degree: degree.value || undefined, want: `${what}=${number / 100}` });
      await app.change({ goal: { what, amount: number, job: id } });
      look(id);
    } catch (error) {
      put(answer, wrong(error));
    }
  };
  const look = (id) => {
    stop();
    stop = progress(answer, id, {
      done: (job) => {
        put(answer, reached(job.answer.reached, app, use));
        draw();
      },
    });
  };
  const form = el("form", { submit: start },
    el("div", { class: "row" }, field("I need", amount), field("of what", kind), field("Contacts of a person, if public", degree)), acts(el("button", {}, "Look for the smallest budget")),
    hint("Rehearsed on synthetic graphs that look like yours as far as is public: no private value is read. It takes a minute or two."));
  put(part, more("Start from a goal instead: “I need 80%”", form, answer));
  if (goal?.job) {
    part.querySelector("details").open = true;
    look(goal.job);
  }
  return () => stop();
}

/** The settings without epsilons, which a goal looks for. */
const unpriced = (app) => Object.fromEntries(Object.entries(app.choices.settings ?? {}).filter(([key]) => !app.method().budgets.some((one) => one.key === key)));

function reached(outcome, app, use) {
  const { low, high } = outcome.epsilon;
  const wanted = outcome.goal.what === "lift" ? points(outcome.goal.least) : percent(outcome.goal.least, 0);
  const key = ["epsilon_a", "epsilon"].find((name) => app.method().budgets.some((budget) => budget.key === name)) ?? app.method().budgets[0]?.key;
  const take = () => {
    app.change({ settings: { ...app.choices.settings, [key]: high } });
    use("The budget is set to what the goal needs.");
  };
  if (high !== null) {
    const sure = `Of the epsilons that were tried ${short(high)} is the smallest that reaches ${wanted} in every rehearsal.`;
    return note("good", sure, acts(button(`Use epsilon ${short(high)}`, take, "main")));
  }
  const words = low === null
    ? `None: no epsilon that was tried reaches ${wanted}, in any rehearsal.`
    : `Do not count on ${wanted}. The best rehearsal reaches it from epsilon ${short(low)} on, the worst at none.`;
  return note("care", words, p("Ask for less, or trust somebody more."));
}
