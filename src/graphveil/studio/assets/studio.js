/** The page of the studio: five steps, one line with all choices so far, and what happens when the line or the server breaks. */

import * as api from "./api.js";
import * as budget from "./budget.js";
import * as data from "./data.js";
import { el, find, goTo, note } from "./dom.js";
import { acts, button, p, put, say, short, wrong } from "./parts.js";
import * as results from "./results.js";
import * as run from "./run.js";
import * as trust from "./trust.js";
import { STATES } from "./watch.js";

const STEPS = { data, trust, budget, run, results };
/** Milliseconds until the page asks again whether the studio answers. */
const AGAIN = 3_000;

let version = 0;
let saving = Promise.resolve();
let leave = () => {};
let online = true;

/** The data's name as people write it, and the method that is chosen. */
const named = (key = app.choices.data) => key.replace(/^name:/, "");
const method = (name = app.choices.method) => app.world.methods.find((entry) => entry.name === name) ?? null;

/** What one epsilon of a method is of, in people's words. */
function unitOf(key) {
  const parts = { epsilon_x: "one person's features", epsilon_y: "one person's label" };
  if (key in parts) return parts[key];
  const whom = method()?.trust;
  if (key === "epsilon_a") return whom === "links" ? "one entry of one contact list" : "one connection";
  if (whom !== "curator") return "one person";
  const unit = app.choices.settings?.unit ?? method().settings.find((one) => one.key === "unit")?.default;
  return unit === "node" ? "one person with all their connections" : "one connection";
}

/** The budgets that a run would have, chosen or the method's own, as [key, epsilon]; a total stands for its parts. */
function budgets() {
  const { settings = {} } = app.choices;
  const all = (method()?.budgets ?? []).map((one) => [one.key, settings[one.key] ?? one.default]);
  const finite = all.filter(([, epsilon]) => typeof epsilon === "number");
  return finite.some(([key]) => key === "epsilon") ? finite.filter(([key]) => key === "epsilon") : finite;
}

/** What a run spends, in as few words as a button holds. */
const spends = () => budgets().map(([key, epsilon]) => `epsilon ${short(epsilon)} for ${unitOf(key)}`).join(" and ");

/** What the steps see of the page: `world` is what the server offers, `choices` what was chosen so far. */
const app = { world: null, choices: {}, change, go, method, named, unitOf, budgets, spends };

function summary() {
  const { data: key, trust: whom, method: name, job } = app.choices;
  const budgeted = method()?.budgets.map((one) => one.key);
  const others = Object.entries({ ...app.choices.settings, ...app.choices.options }).filter(([key, value]) => value !== undefined && budgeted?.includes(key) === false);
  const parts = [
    ["data", "data", key && named(key)],
    ["trust", "trust", whom && trust.TITLES[whom]],
    ["trust", "method", name],
    ["budget", "budget", method() && spends()],
    ...(others.length ? [["budget", "settings", others.map((pair) => pair.join(" ")).join(", ")]] : []),
    ["run", "run", job && STATES[job.state]],
  ];
  const words = parts.flatMap(([step, what, value], place) => [
    place ? " · " : "",
    el("a", { href: `#${step}`, class: value ? "" : "open" }, `${what}: ${value || (what === "run" ? "not started yet" : "not chosen yet")}`),
  ]);
  put(find("summary"), el("span", { class: "unseen" }, "Your choices so far: "), words);
}

/** Keep a choice: on this page at once, on the server as soon as it answers. */
function change(patch) {
  const before = app.choices;
  if (patch.data !== undefined && patch.data !== before.data) {
    // What was chosen for other data waits for whoever comes back to them.
    const blank = { trust: undefined, method: undefined, settings: {}, options: {}, goal: undefined, job: undefined };
    const own = Object.fromEntries(Object.keys(blank).map((key) => [key, before[key]]));
    const past = before.data ? { ...before.past, [before.data]: own } : {};
    patch = { ...blank, ...past[patch.data], past, ...patch };
  } else if (["settings", "options", "method"].some((key) => key in patch)) {
    // The last run had other settings than the line at the top now says: it stands under everything that ran.
    const other = "method" in patch && patch.method !== before.method;
    patch = { job: undefined, ...(other ? { goal: undefined } : {}), ...patch };
  }
  app.choices = { ...before, ...patch };
  summary();
  saving = saving.then(keep, keep);
  return saving;
}

async function keep() {
  try {
    version = (await api.put("saved", { version, saved: app.choices })).version;
  } catch (error) {
    if (error.code === "stale") await differing();
    else if (error.code !== "offline") put(find("tabs"), wrong(error, "Your last choice is not saved."));
  }
}

/** Another tab chose something else: this person decides which of the two stays. */
async function differing() {
  const theirs = await api.get("saved");
  const settle = (act) => () => {
    put(find("tabs"));
    act();
    goTo("step");
  };
  const take = settle(() => adopt(theirs));
  const mine = settle(() => {
    version = theirs.version;
    change({});
  });
  put(find("tabs"), 
    note("care", "Another tab has made other choices meanwhile.", p("Nothing is lost yet: this tab still has its own choices. Which of the two do you want to keep?"),
      acts(button("Take the other tab's", take, "main"), button("Keep what is here", mine))),
  );
}

function adopt(saved) {
  version = saved.version;
  app.choices = saved.saved ?? {};
  summary();
  show(false);
}

/** Whoever comes back to this tab sees what another one has chosen meanwhile. */
async function look() {
  if (document.hidden || !app.world) return;
  await saving;
  const saved = await api.get("saved").catch(() => null);
  if (saved === null || saved.version === version || find("tabs").childElementCount) return;
  adopt(saved);
  say("Another tab has changed the choices; this one shows them now.");
}

function go(step) {
  if (location.hash === `#${step}`) show();
  else location.hash = step;
}

function show(move = true) {
  const [name, ...rest] = location.hash.slice(1).split("/");
  const step = Object.hasOwn(STEPS, name) ? name : "data";
  for (const link of document.querySelectorAll(".steps a")) {
    if (link.hash === `#${step}`) link.setAttribute("aria-current", "step");
    else link.removeAttribute("aria-current");
  }
  leave();
  const { head, lead, needs } = STEPS[step];
  document.title = `${head} - graphveil studio`;
  find("head").textContent = head;
  find("lead").textContent = lead;
  const missing = needs.find((key) => !app.choices[key]);
  const body = el("div", {});
  put(find("body"), body);
  const elsewhere = !missing && needs.includes("method") && !method();
  leave = (missing || elsewhere ? first(body, missing ?? "elsewhere") : STEPS[step].render(body, app, rest.map(decodeURIComponent).join("/"))) ?? (() => {});
  if (move) goTo("step");
}

/** A step that leans on one before it says so, and leads there. */
function first(body, missing) {
  const step = missing === "data" ? "data" : "trust";
  const elsewhere = "Organisations agree on this together, each on its own machine.";
  const words = { data: "Choose the data first.", method: "Say first whom you trust.", elsewhere };
  put(body, note("care", words[missing], p(el("a", { href: `#${step}` }, `To the step ${STEPS[step].head.toLowerCase()}`))));
}

function connection(answers) {
  if (answers === online) return;
  online = answers;
  if (answers) {
    put(find("connection"), note("good", "The studio answers again.", p("Go on where you were. Runs in progress went on meanwhile.")));
    setTimeout(() => { if (online) put(find("connection")); }, 8_000);
    saving = saving.then(keep, keep);
    return;
  }
  const remedy = "Look where the command runs. If it has ended, start it again in the same folder: graphveil studio.";
  put(find("connection"), note("bad", "The studio does not answer.", p(remedy, " Runs in progress go on; your choices stay; this page tries again.")));
  const again = setInterval(() => {
    if (online) clearInterval(again);
    else api.get("saved").catch(() => {});
  }, AGAIN);
}

function closed() {
  find("step").hidden = true;
  find("closed").hidden = false;
}

async function begin() {
  api.listen({ connection, closed });
  await api.enter();
  const [world, saved] = await Promise.all([api.get("choices"), api.get("saved")]);
  app.world = world;
  version = saved.version;
  app.choices = saved.saved ?? {};
  find("root").textContent = `folder ${world.root}`;
  find("step").hidden = false;
  summary();
  show(false);
  addEventListener("hashchange", () => show());
  document.addEventListener("visibilitychange", look);
  addEventListener("focus", look);
}

begin().catch((error) => {
  if (error.status !== 401) put(find("connection"), wrong(error, "The studio could not be opened."));
});
