/** Step 2: whom somebody trusts, the method that fits, and a picture of who sees what. */

import * as api from "./api.js";
import { el, facts, more, note } from "./dom.js";
import { parties } from "./parties.js";
import { acts, button, files, fill, p, put, select } from "./parts.js";

export const head = "Whom do you trust?";
export const lead = "Whoever is trusted may see the data as they are. The fewer, the better: but less trust costs accuracy.";
export const needs = ["data"];

export const TITLES = {
  local: "nobody: devices add the noise",
  links: "nobody may know who knows whom",
  curator: "a curator, who trains",
  release: "a curator, who publishes once",
  federation: "organisations, each with its own data",
};
/** What the library advises for the data, for every trust: it reads no private value. One question an opening of the page. */
const answers = new Map();
export function advice(data) {
  if (!answers.has(data)) {
    const query = api.post("queries", { query: "advise", data });
    answers.set(data, query);
    query.catch(() => answers.delete(data));
  }
  return answers.get(data);
}

export const forgetAdvice = (data) => answers.delete(data);

/** What a run takes besides the method's settings; a release is made once, and judged by nobody. */
const OPTIONS = [
  { key: "seed", default: 0, allowed: [], help: "Fixes splits and weights, never the privacy noise." },
  { key: "private_share", default: 1, allowed: [], help: "For experiments: the share of edges that are private." },
  { key: "repeats", default: 1, allowed: [], help: "How many trainings, each with a fresh split and fresh noise; each spends." },
  { key: "split", default: "random", allowed: [], help: "random, percentages such as 75/10/15, 5-fold, or declared." },
  { key: "controls", default: "true", allowed: ["false"], help: "Whether to train what the run is compared with." },
];
export const optionsOf = (method) => (method.command === "release" ? OPTIONS.slice(0, 2) : OPTIONS);

/** The configuration so far, as queries and jobs take it. */
export function request({ choices, method }) {
  const options = optionsOf(method()).map(({ key }) => [key, choices.options?.[key]]);
  return { data: choices.data, method: choices.method, settings: choices.settings ?? {}, ...Object.fromEntries(options) };
}

/** What the library plans for it: it reads no private value and spends nothing. */
export const planned = (app) => api.post("queries", { query: "plan", ...request(app) });

/** A warning where a plan leaves open what the data declare private. */
export function exposed({ guarantee }) {
  const lines = guarantee.assumes.filter((line) => line.includes("NOT protected, though"));
  return lines.length ? note("bad", "This leaves open what the data declare private.", lines.map((line) => p(line))) : [];
}

export function render(body, app) {
  const cards = el("div", {});
  const chosen = el("div", {});
  body.append(cards, chosen);
  fill(cards, "Checking which trust models fit what the data declare private. No private value is read.", () => advice(app.choices.data), ({ answer }) => {
    const entries = new Map(answer.advice.map((entry) => [entry.trust, entry]));
    const pick = (name) => {
      const entry = entries.get(name);
      if (app.choices.trust !== name) app.change({ trust: name, method: entry.method ?? undefined, settings: { ...entry.settings } });
      mark();
      detail(chosen, app, entry);
    };
    const list = el("ul", { class: "picks" }, Object.keys(TITLES).map((name) => card(app, entries.get(name), name, pick)));
    const mark = () => {
      for (const one of list.querySelectorAll(".pick")) one.setAttribute("aria-pressed", String(one.dataset.name === app.choices.trust));
    };
    mark();
    if (app.choices.trust) detail(chosen, app, entries.get(app.choices.trust));
    return list;
  });
}

function card(app, entry, name, pick) {
  const fits = Boolean(entry?.method);
  const { low, high } = entry?.expected ?? {};
  const gain = entry?.expected ? `On graphs like yours it predicted ${ten(low)} to ${ten(high)} more of 100 people correctly than without the private data.` : "";
  const who = capital(`${app.world.trusts.find((one) => one.name === name).words}.`);
  const words = fits ? [who, gain] : [who, `No method of this kind fits what ${app.named()} declares private.`];
  const attributes = { "data-name": name, "aria-pressed": "false", disabled: !fits };
  return el("li", {}, button([el("strong", {}, capital(TITLES[name])), words.map((line) => el("span", {}, line))], () => pick(name), "pick", attributes));
}

const ten = (share) => (100 * share).toFixed(0);
const capital = (text) => text[0].toUpperCase() + text.slice(1);

function detail(part, app, entry) {
  const own = new Set(app.world.trusts.find((one) => one.name === entry.trust)?.methods ?? []);
  const method = app.method();
  const runs = method !== null && ["train", "release"].includes(method.command);
  const options = [...own].map((name) => [name, name === entry.method ? `${name} (advised)` : name]);
  const changed = (name) => {
    app.change({ method: name, settings: name === entry.method ? { ...entry.settings } : {} });
    detail(part, app, entry);
  };
  const advised = app.choices.method === entry.method;
  const control = el("div", {});
  const choice = select(options, app.choices.method, changed, { id: "method" });
  if (options.length > 1) control.append(more("Choose another method", el("label", { for: "method" }, "Method"), choice));
  const about = [["Method", app.choices.method, method ? `: ${method.summary}` : ""]];
  if (advised) about.push(["Why this one", entry.why], ["When it does not help", entry.loses], ["Not protected", entry.not_protected]);
  const [picture, same] = [0, 1].map(() => el("div", {}));
  const onward = runs
    ? acts(button("Choose the budget", () => app.go("budget"), "main"))
    : note("care", "Each organisation starts this on its own machine, so this page starts none.",
      p("The commands below try it out on this machine, on a graph that is split in two, and run all three parties. Their results in the studio's folder appear under Results."));
  put(part,
    el("h2", {}, "What is advised"), facts(about.filter((line) => line[1])), control,
    el("h2", {}, "Who sees what"), picture, onward, same,
  );
  const trial = "(graphveil federation serve run/server & graphveil federation join run/holder2 parts/holder2 & graphveil federation join run/holder1 parts/holder1)";
  if (method === null) put(same, files(`${entry.command} && ${trial}`));
  if (method === null) put(picture, p("It is drawn for the agreement that they sign, by ", el("code", {}, "graphveil federation plan"), "."));
  else fill(picture, "Drawing who sees what in this configuration.", () => planned(app), ({ answer, run, rehearsal }) => {
    put(same, files(run));
    const alone = "This page starts no collection. Run in the studio's folder, these commands rehearse one, and their export appears under Results.";
    if (rehearsal) same.append(more("Rehearse a collection from simulated devices", p(alone), files(rehearsal)));
    const played = "A run here plays the people's devices, on the data in this folder: whoever holds these sees them raw.";
    return [rehearsal ? p(played) : [], exposed(answer), parties(answer.parties)];
  });
}
