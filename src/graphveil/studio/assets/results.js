/** Step 5: everything that is finished: compare, see what differs, take figure and data away. */

import * as api from "./api.js";
import { result } from "./card.js";
import { band, pixels, ranges, standing } from "./charts.js";
import { el, find, note, table, theirs } from "./dom.js";
import { acts, button, field, files, fill, p, percent, points, put, save, select, short, wrong } from "./parts.js";

export const head = "Results";
export const lead = "All finished runs, releases, federations and collections in the folder, beside each other.";
export const needs = [];

export function render(body, app, path) {
  if (path) {
    const part = el("div", {});
    body.append(el("p", { class: "no-print" }, el("a", { href: "#results" }, "← All results")), part);
    return result(part, app, path);
  }
  fill(body, "Comparing what is finished.", () => everything(), (work) => overview(work, app));
  return null;
}

/** Finished folders, each with what `compare-runs` says of it, and the words of that command. */
async function everything() {
  const { runs } = await api.get("folders");
  const comparable = runs.filter((one) => one.kind !== "collection");
  if (!comparable.length) return { runs, groups: [], command: null, error: null };
  try {
    const { answer, command } = await api.post("queries", { query: "compare-runs", runs: comparable.map((one) => one.path) });
    const rows = new Map(answer.rows.map((row) => [row.folder.replace(/^\.\//, ""), row]));
    return { runs: runs.map((one) => ({ ...one, ...rows.get(one.path) })), groups: answer.groups, answer, command, error: null };
  } catch (error) {
    return { runs, groups: [], command: null, error };
  }
}

/** Finished work with figures, for other steps: empty where nothing can be compared. */
export const finished = () => everything().then(({ runs }) => runs.filter((one) => one.accuracy), () => []);

const auc = (run) => Math.max(...Object.values(run.attacks ?? {}).map((one) => one?.auc?.mean ?? -1), -1);
const COLUMNS = [
  ["run", (run) => run.path, (run) => el("a", { href: `#results/${run.path}` }, theirs(run.path.replace(/^runs\//, "")))],
  ["data", (run) => run.data, (run) => theirs(run.data || "")],
  ["method", (run) => run.method, (run) => run.method || run.kind],
  ["protects", (run) => run.unit ?? "", (run) => (run.unit ? `${run.unit} (group ${run.group})` : "")],
  ["#epsilon", (run) => Number(run.epsilon ?? Infinity), (run) => (run.epsilon === undefined ? "" : short(run.epsilon))],
  ["#accuracy", (run) => run.accuracy?.mean ?? -1, (run) => (run.accuracy ? percent(run.accuracy.mean) : "")],
  ["#lift", (run) => run.lift?.mean ?? -9, (run) => (run.lift ? points(run.lift.mean) : "")],
  ["#attack", auc, (run) => (auc(run) < 0 ? "" : auc(run).toFixed(2))],
];
const FIGURES = {
  lift: { title: "Lift of each run", unit: "points", ends: [0], of: (run) => run.lift },
  accuracy: { title: "Accuracy of each run", unit: "%", of: (run) => run.accuracy },
};

function overview(work, app) {
  if (!work.runs.length) return note("", "Nothing is finished yet.", p("It will appear here. ", el("a", { href: "#data" }, "Begin with the data")));
  const view = { text: "", group: "", sort: "run", falling: false, picked: [], figure: "lift", ...app.choices.view };
  const [listed, differs, chart] = [el("div", {}), el("div", {}), el("div", {})];
  // What is drawn anew takes the focus along.
  const keep = (patch, focus = "") => {
    Object.assign(view, patch);
    app.change({ view: { ...view } });
    draw();
    find(focus)?.focus();
  };
  const visible = () => {
    const column = COLUMNS.find(([name]) => name.replace("#", "") === view.sort) ?? COLUMNS[0];
    const [one, other] = view.falling ? [-1, 1] : [1, -1];
    const words = (run) => `${run.path} ${run.data} ${run.method} ${run.kind} ${run.unit ?? ""}`.toLowerCase();
    return work.runs
      .filter((run) => words(run).includes(view.text.toLowerCase()) && (!view.group || run.group === view.group))
      .sort((a, b) => (column[1](a) < column[1](b) ? other : column[1](a) > column[1](b) ? one : 0));
  };
  const draw = () => {
    const runs = visible();
    put(listed, board(runs, view, keep));
    put(differs, difference(work.runs.filter((run) => view.picked.includes(run.path))));
    put(chart, figured(runs, view, keep));
  };
  draw();
  const filter = el("input", { type: "search", value: view.text, input: (event) => keep({ text: event.target.value }) });
  const about = ({ group, protected: parts, trusted }) => [group, `${group}: protects ${parts.map((part) => part.unit).join(" and ")}. ${trusted}`];
  const groups = select([["", "all"], ...work.groups.map(about)], view.group, (group) => keep({ group }));
  const errors = work.error ? [wrong(work.error, "These could not be compared.")] : [];
  const written = () => save("results.json", JSON.stringify(work.answer, null, 2), "application/json");
  const raw = work.answer ? button("Download results.json", written, "small") : [];
  const takeaway = el("section", { class: "card files" }, el("h2", {}, "Take it with you"), work.command ? el("pre", { tabindex: "0" }, work.command) : [],
    acts(button("Download results.csv", () => save("results.csv", csv(visible()), "text/csv"), "small"), raw));
  const why = "Compare epsilons within a group only: its runs trust the same people and protect the same unit.";
  return [errors, el("div", { class: "row no-print" }, field("Find", filter), field("Only those of one group", groups, why)), listed, differs, chart, takeaway];
}

/** The table, with heads that sort and boxes that pick what to compare. */
function board(runs, view, keep) {
  const rows = runs.map((run) => {
    const rest = view.picked.filter((one) => one !== run.path);
    const change = () => keep({ picked: box.checked ? [...rest, run.path] : rest }, `pick-${run.path}`);
    const box = el("input", { type: "checkbox", id: `pick-${run.path}`, "aria-label": `Compare ${run.path}`, change });
    box.checked = view.picked.includes(run.path);
    return [...COLUMNS.map(([, , cell]) => cell(run)), box];
  });
  const caption = `${runs.length} of them. Accuracy, lift and attacks (0.50 is guessing, 1.00 finds all) are measured on true data, for you alone.`;
  const grid = table(caption, [...COLUMNS.map(([name]) => name), "compare"], rows);
  // Nothing is picked on paper.
  for (const line of grid.querySelectorAll("tr")) line.lastElementChild.classList.add("no-print");
  const heads = grid.querySelectorAll("th");
  COLUMNS.forEach(([name], place) => {
    const word = name.replace("#", "");
    if (view.sort === word) heads[place].setAttribute("aria-sort", view.falling ? "descending" : "ascending");
    const id = `sort-${word}`;
    put(heads[place], button(word, () => keep({ sort: word, falling: view.sort === word && !view.falling }, id), "sort", { id }));
  });
  return grid;
}

/** What differs between those that were picked, setting by setting. */
function difference(runs) {
  if (runs.length < 2) return [el("p", { class: "hint no-print" }, "Tick two or more to see what differs between them.")];
  const flat = runs.map(({ data, method, unit = "-", against = "-", epsilon = "-", delta = "-", settings }) => (
    { data: data || "-", method: method || "-", unit, against, epsilon, delta, ...settings }
  ));
  const keys = [...new Set(flat.flatMap((one) => Object.keys(one)))];
  const spell = (value) => (value === undefined || value === null ? "default" : typeof value === "number" ? short(value) : String(value));
  const rows = keys.filter((key) => new Set(flat.map((one) => spell(one[key]))).size > 1).map((key) => [key, ...flat.map((one) => spell(one[key]))]);
  if (!rows.length) return [note("", "They have the same settings.")];
  return [table("What differs; everything else is the same", ["setting", ...runs.map((run) => run.path.replace(/^runs\//, ""))], rows)];
}

/** One figure, of one unit, and how to take it away. */
function figured(runs, view, keep) {
  const kind = [view.figure, "accuracy"].find((name) => runs.some((run) => FIGURES[name].of(run)));
  if (!kind) return [];
  const figure = FIGURES[kind];
  const rows = runs.filter((run) => figure.of(run)).map((run) => {
    const name = `${run.method} on ${run.data}, epsilon ${short(run.epsilon)}${run.group ? `, group ${run.group}` : ""}`;
    return { name, kind: view.picked.includes(run.path) ? "own" : "", ...band(figure.of(run)) };
  });
  const chart = ranges(figure, rows);
  const svg = () => chart.querySelector("svg");
  const choice = select([["lift", "lift, in points"], ["accuracy", "accuracy, in %"]], kind, (name) => keep({ figure: name }, "figure"), { id: "figure" });
  const drawn = button("Download figure.svg", () => save("figure.svg", standing(svg(), figure.title), "image/svg+xml"), "small");
  const painted = button("Download figure.png", async () => save("figure.png", await pixels(svg(), figure.title)), "small");
  return [el("h2", {}, "Figure"), el("div", { class: "no-print" }, field("Draw", choice)), chart, acts(drawn, painted)];
}

function csv(runs) {
  const own = ["path", "kind", "data", "method", "group", "unit", "epsilon", "delta"];
  const ends = ["mean", "low", "high"];
  const columns = [...own, ...["accuracy", "lift"].flatMap((name) => ends.map((end) => `${name}_${end}`)), "attack_auc"];
  const measured = (run) => ["accuracy", "lift"].flatMap((name) => ends.map((end) => run[name]?.[end]));
  const cells = (run) => [...own.map((name) => run[name]), ...measured(run), auc(run) < 0 ? "" : auc(run)];
  // A cell that begins so would be a formula to a spreadsheet.
  const spell = (value) => `"${String(value ?? "").replace(/^(?=[=+@-]\D)/, "'").replaceAll('"', '""')}"`;
  return `${[columns, ...runs.map(cells)].map((line) => line.map(spell).join(",")).join("\n")}\n`;
}
