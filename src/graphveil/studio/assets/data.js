/** Step 1: which data. Folders below the root, named examples, tables to bring along, other sources. */

import * as api from "./api.js";
import { declaration } from "./declare.js";
import { el, facts, more, note, points, table, theirs } from "./dom.js";
import { imports } from "./imports.js";
import { count } from "./numbers.js";
import { acts, button, field, files, fill, list, p, put, select, wrong } from "./parts.js";
import { advice, forgetAdvice } from "./trust.js";

export const head = "Which data?";
export const lead = "Choose a graph: people, what is known about each, and who is connected to whom. Nothing private is read before you say so.";
export const needs = [];

export function render(body, app, rest) {
  const [part, folder] = split(rest);
  if (part === "declare") return declaration(body, app, folder, () => declared(app, folder));
  if (part === "import") return imports(body, app);
  const chosen = el("div", {});
  const offers = el("div", {});
  body.append(offers, chosen);
  fill(offers, "Looking through the folder.", () => api.get("folders"), (folders) => offer(folders, app, chosen));
  if (app.choices.data) detail(chosen, app);
  return null;
}

const split = (rest) => [rest.split("/")[0], rest.split("/").slice(1).join("/")];

function declared(app, folder) {
  forgetAdvice(folder);
  app.change({ data: folder });
  app.go("data");
}

function offer({ data }, app, chosen) {
  const all = el("div", {});
  const pick = (key) => {
    app.change({ data: key });
    mark();
    detail(chosen, app).then(() => chosen.scrollIntoView({ block: "nearest" }));
  };
  const mark = () => {
    for (const one of all.querySelectorAll(".pick")) one.setAttribute("aria-pressed", String(one.dataset.key === app.choices.data));
  };
  const entry = (key, name, words, act) => (
    el("li", {}, button([el("strong", {}, theirs(name)), el("span", {}, words)], act, "pick", { "data-key": key, "aria-pressed": "false" }))
  );
  const folders = data.map(({ path, state, files: names, error }) => {
    const name = path === "." || path === "" ? app.world.root : path;
    if (state === "declared") return entry(path, name, "ready: private parts are declared", () => pick(path));
    if (state === "tables") return entry(path, name, `${list(names)}: tell what is in them`, () => app.go(`data/declare/${path}`));
    return entry(path, name, error, () => app.go(`data/declare/${path}`));
  });
  if (folders.length) all.append(el("h2", {}, "In your folder"), el("ul", { class: "picks" }, folders));
  all.append(bring(app));
  const examples = app.world.named.map((name) => entry(`name:${name}`, name, "public example", () => pick(`name:${name}`)));
  if (examples.length) all.append(el("h2", {}, "Examples to try it with"), el("ul", { class: "picks" }, examples));
  mark();
  return all;
}

/** What the library says of the data without a look at private values, and the way on. */
function detail(part, app) {
  const key = app.choices.data;
  const [about, counts] = [0, 1].map(() => el("div", {}));
  put(part, el("h2", {}, theirs(app.named())), about, counts);
  return fill(about, "Reading its public facts.", () => Promise.all([advice(key), api.get("folders")]), ([{ answer }, folders]) => {
    const { nodes, labelled, classes, dimension } = answer.advice[0].facts;
    const { toml } = folders.data.find((one) => one.path === key) ?? {};
    const hidden = answer.declares;
    const words = {
      features: "what is known about each person (features)", labels: "which class each belongs to (labels)",
      edges: "who is connected to whom (edges)",
    };
    const lines = [
      ["People (nodes)", `${count(nodes)}, with ${count(dimension)} feature${dimension === 1 ? "" : "s"} each`],
      ["To predict", `which of ${classes} classes somebody belongs to; ${count(labelled)} have a label`],
    ];
    const open = Object.keys(words).filter((one) => !hidden.includes(one));
    lines.push(["Declared private", hidden.length ? list(hidden.map((one) => words[one])) : "nothing: there is nothing to protect"]);
    lines.push(["Public", [...open.map((one) => words[one]), "who takes part"].join("; ")]);
    if (key.startsWith("name:")) lines.push(["An example", "these data are public: here they stand in for private ones"]);
    const show = button("Show counts, for the owner alone", () => fill(counts, "Counting.", () => api.post("queries", { query: "describe", data: key }), described));
    const onward = acts(button("Say whom you trust", () => app.go("trust"), "main"), show);
    return [facts(lines), onward, toml ? files("", [["graph.toml", toml]]) : []];
  });
}

function described({ answer, command }) {
  const { degrees, homophily } = answer;
  const lines = [["Connections", count(answer.edges)], ["Without any", count(answer.isolated_nodes)]];
  lines.push(["Of one person", `${degrees.min} to ${degrees.max}, ${degrees.mean.toFixed(1)} on average`]);
  const alike = homophily?.edge ?? null;
  if (alike !== null) lines.push(["Friends alike", `${Math.round(100 * alike)} of 100 connections join people of one class`]);
  const rows = Object.entries(answer.classes ?? {}).map(([name, number]) => [theirs(name), count(number)]);
  const classes = more("Classes", table("How many people each class has", ["class", "#people"], rows));
  return [note("care", "For the data's owner alone.", p(answer.warning)), facts(lines), classes, more("Notes", points(answer.notes)), files(command)];
}

/** Tables to bring along: each says what it is a table of, and goes into a new folder. */
function bring(app) {
  const status = el("div", { role: "status" });
  const listed = el("div", {});
  const picker = el("input", { type: "file", multiple: true, accept: ".csv,.parquet", change: () => take([...picker.files]) });
  const take = (chosen) => {
    const tables = chosen.map((file) => ({ file, stem: stemOf(file.name) }));
    const name = el("input", { value: folderOf(app), spellcheck: "false", autocomplete: "off" });
    const kinds = [["nodes", "people, one a line"], ["edges", "connections, one a line"], ["features", "features, one entry a line"]];
    const rows = tables.map((one) => field(`${one.file.name} is a table of`, select(kinds, one.stem, (stem) => { one.stem = stem; })));
    const go = button("Put them into the folder", () => store(tables, name.value.trim(), status, app), "main");
    put(listed, el("div", { class: "row" }, rows), field("Name of a new folder", name), acts(go));
    put(status);
  };
  const zone = el("div", { class: "drop no-print" },
    field("Upload tables: one of people, one of connections (csv or parquet)", picker,
      "Choose both at once, or drop them here. They are copied into the studio's folder on this machine, and nowhere else."),
    listed, status,
    p(el("a", { href: "#data/import" }, "Take it from another source: GraphML, networkx, PyG, an edge list, a database")));
  zone.addEventListener("dragover", (event) => {
    event.preventDefault();
    zone.classList.add("over");
  });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    take([...event.dataTransfer.files]);
  });
  return zone;
}

const stemOf = (name) => (/edge|link|contact|relation|friend|call|follow|tie/i.test(name) ? "edges" : /feature/i.test(name) ? "features" : "nodes");
/** By the date of this place: of Sweden's spelling, which is that of names. */
const folderOf = (app) => `data-${new Date().toLocaleDateString("sv-SE")}${app.choices.data ? "-2" : ""}`;

async function store(tables, folder, status, app) {
  const stems = tables.map((one) => one.stem);
  const wanted = ["nodes", "edges"].filter((stem) => stems.filter((one) => one === stem).length !== 1);
  const few = "One table of people and one of connections are needed.";
  if (wanted.length) return put(status, note("care", few, p("Choose both files at once, and say which is which.")));
  if (!/^[\p{L}\p{N}][\p{L}\p{N}._ -]*$/u.test(folder)) return put(status, note("bad", "The folder needs a name of letters, digits, dots and dashes."));
  try {
    for (const { file, stem } of tables) {
      put(status, el("p", { class: "waiting" }, `Copying ${file.name}.`));
      const suffix = file.name.toLowerCase().endsWith(".parquet") ? "parquet" : "csv";
      await api.upload(`tables/${api.spelled(folder)}/${stem}.${suffix}`, file);
    }
    app.go(`data/declare/${folder}`);
  } catch (error) {
    put(status, wrong(error, "The tables were not copied."));
  }
  return null;
}
