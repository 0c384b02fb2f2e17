/** The declaration of a folder, by the names of its columns and a person's answers alone. */

import * as api from "./api.js";
import { el, more, note, points, theirs } from "./dom.js";
import { acts, box, button, field, files, fill, hint, p, put, select, wrong } from "./parts.js";

const KINDS = [
  ["", "choose"], ["number", "a number"], ["integer", "a whole number"], ["yes-no", "yes or no"], ["category", "one of some words"],
  ["ordinal", "one of some levels, in order"], ["tags", "several of some words"], ["leave out", "nothing: leave it out"],
];
const PRIVATE = [
  ["edges", "who is connected to whom"], ["features", "what is known about each person (the columns below)"],
  ["labels", "which class somebody belongs to"], ["none", "nothing: all of it is public"],
];
const WHY =
  "A range or a list that is read off the data leaks some of it. So only the names of the columns were read: " +
  "what they may hold has to come from a form, a law, a manual. Afterwards the folder is checked against your answers.";
const DIRECTIONS = [["", "choose"], ["no", "no: if A knows B, B knows A"], ["yes", "yes: A may follow B, and not B A"]];
const ROLES = { id: "Which column identifies a person?", label: "Which column is to be predicted?", source: "A connection begins at", target: "and ends at" };

/** Words one a line, or with commas between them. */
const words = (text) => text.split(text.includes("\n") ? "\n" : ",").map((word) => word.trim()).filter(Boolean);

export function declaration(body, app, folder, finished) {
  const form = el("div", {});
  body.append(p(el("a", { href: "#data" }, "← All data")), el("h2", {}, "What is in ", theirs(folder), "?"), form);
  fill(form, "Reading the names of the columns, and nothing else.", () => api.post("drafts", { folder }), ({ draft }) => ask(draft, app, folder, finished));
}

function ask(draft, app, folder, finished) {
  const past = app.choices.drafts?.[folder] ?? {};
  const blank = { replace: false, private: [], classes: "", directed: "", dimension: "", columns: {} };
  const answers = { ...blank, ...past, roles: { ...draft.roles, ...past.roles } };
  const keep = () => app.change({ drafts: { ...app.choices.drafts, [folder]: answers } });
  const columns = el("div", {});
  const lines = () => put(columns, draft.features.map((feature) => reserved(feature, answers) ? [] : column(feature, answers, keep)).flat());
  const status = el("div", { role: "status" });
  const tables = Object.entries(draft.files);
  const [people, links] = ["nodes", "edges"].map((stem) => tables.find(([file]) => file.startsWith(`${stem}.`))?.[1] ?? []);
  const role = (key, names) => {
    const options = [["", key === "label" ? "none" : "choose"], ...names.map((name) => [name, name])];
    const changed = (value) => {
      answers.roles[key] = value;
      lines();
      keep();
    };
    return field(ROLES[key], select(options, answers.roles[key] ?? "", changed, { "data-role": key }));
  };
  const text = (key, control) => {
    control.value = answers[key];
    control.addEventListener("change", () => { answers[key] = control.value; keep(); });
    return control;
  };
  // Many columns are often of one kind: those that are open still are answered at once.
  const every = (kind) => {
    for (const { name } of draft.features) answers.columns[name] = answers.columns[name]?.kind ? answers.columns[name] : { kind };
    lines();
    keep();
  };
  lines();
  const batch = field("All columns that have no answer yet hold", select(KINDS, "", every, { "data-column": "*" }));
  const parts = [
    note("", "Why you are asked", p(WHY)),
    el("fieldset", {}, el("legend", {}, "What is private?"), hint("Tick what must be protected. All else is public."),
      PRIVATE.map(([key, name]) => box(name, answers.private.includes(key), (on) => {
        answers.private = PRIVATE.map(([one]) => one).filter((one) => (one === key ? on : answers.private.includes(one)));
        keep();
      }))),
    el("fieldset", {}, el("legend", {}, "People and connections"), el("div", { class: "row" }, role("id", people), role("source", links), role("target", links)),
      field("Does a connection have a direction?", text("directed", select(DIRECTIONS, answers.directed)))),
    el("fieldset", {}, el("legend", {}, "To predict"), el("div", { class: "row" }, role("label", people),
      field("All classes", text("classes", el("textarea", { rows: "3", "data-answer": "classes" })),
        "All that exist, including those that nobody has. One a line, or with commas between them."))),
    el("fieldset", {}, el("legend", {}, "What each column may hold"), batch, columns),
  ];
  if (tables.some(([file]) => file.startsWith("features."))) {
    parts.push(field("How many features are there?", text("dimension", el("input", { type: "number", min: "1" }))));
  }
  const send = async (event) => {
    event?.preventDefault();
    const clear = answers.private.includes("none") ? answers.private.length === 1 : answers.private.length > 0;
    if (!clear) return put(status, note("care", "Say first what is private.", p("Tick one or more of the first questions; or that nothing is.")));
    const open = unanswered(draft, answers);
    if (open.length) return put(status, note("care", "Some answers are missing.", points(open)));
    put(status, el("p", { class: "waiting" }, "Writing graph.toml, and checking the folder against it."));
    try {
      const { toml, command, notes = [] } = await api.post("declarations", { folder, answers: complete(draft, answers), replace: answers.replace });
      const onward = acts(button("Go on with these data", finished, "main"));
      const fits = note("good", "The folder fits what you said.", notes.map((line) => p(line)), onward);
      put(status, fits, more("graph.toml", el("pre", { tabindex: "0" }, toml)), files(command, [["graph.toml", toml]]));
    } catch (error) {
      // What does not fit was written by this form, and may be written anew by it.
      if (error.status === 422) answers.replace = true;
      keep();
      put(status, wrong(error, error.status === 422 ? "The folder and your answers do not fit yet." : "graph.toml was not written."), ...over(error));
    }
    status.scrollIntoView({ block: "nearest" });
    return null;
  };
  const over = (error) => (error.code === "used" ? [acts(button("Replace the graph.toml that is there", () => { answers.replace = true; send(); }))] : []);
  return el("form", { submit: send, novalidate: true }, parts, acts(el("button", { class: "main" }, "Write graph.toml and check the folder")), status);
}

const reserved = (feature, answers) => feature.columns.every((name) => [answers.roles.id, answers.roles.label, answers.roles.split].includes(name));

/** What the name of a column suggests, as the form holds it. */
function suggested({ kind, identifies }) {
  if (!kind) return { kind: identifies ? "leave out" : "" };
  if (typeof kind === "string") return { kind };
  const [[name, [low, high]]] = Object.entries(kind);
  return { kind: name, low: String(low), high: String(high) };
}

/** One column, or several that are called alike: its kind, what that needs, and what stands for an empty cell. */
function column(feature, answers, keep) {
  const state = (answers.columns[feature.name] ??= suggested(feature));
  const set = (key, value) => {
    state[key] = value;
    keep();
  };
  const input = (key, name, more = {}) => (
    field(name, el("input", { value: state[key] ?? "", change: (event) => set(key, event.target.value.trim()), ...more }))
  );
  const needs = el("div", { class: "row" });
  const show = () => {
    const number = ["number", "integer"].includes(state.kind);
    const listed = ["category", "ordinal", "tags"].includes(state.kind);
    const parts = [];
    if (number) parts.push(input("low", "from", { inputmode: "decimal" }), input("high", "to", { inputmode: "decimal" }));
    if (listed) {
      const control = el("textarea", { rows: "2", change: () => set("words", control.value) }, state.words ?? "");
      parts.push(field(state.kind === "ordinal" ? "Levels, in order" : "All words", control, "Also those that nobody has."));
    }
    if (state.kind === "tags") parts.push(input("most", "At most how many of one person?", { inputmode: "numeric" }));
    if (state.kind && !["tags", "leave out"].includes(state.kind)) parts.push(input("missing", "An empty cell counts as", { placeholder: "refused" }));
    put(needs, parts);
  };
  const choice = select(KINDS, state.kind, (value) => { set("kind", value); show(); }, { "data-column": feature.name });
  show();
  const many = feature.columns.length > 1 ? ` (${feature.columns.length} columns)` : "";
  const why = feature.kind || feature.identifies ? `Suggested: ${feature.reason}.` : `Nothing is suggested: ${feature.reason}.`;
  return el("div", { class: "column" }, el("div", { class: "row" }, field(["What ", theirs(feature.name), ` holds${many}`], choice, why), needs));
}

/** A number as it is typed, also with a decimal comma; NaN where it is none. */
const number = (text = "") => (String(text).trim() ? Number(String(text).replace(",", ".")) : NaN);

/** What is not answered yet, in sentences: the library would name one at a time, and in its own words. */
function unanswered(draft, { roles, directed, columns, classes }) {
  const open = [];
  if (!directed) open.push("Does a connection have a direction?");
  if (roles.label && !words(classes).length) open.push(`All classes of ${roles.label}.`);
  for (const feature of draft.features.filter((one) => !reserved(one, { roles }))) {
    const { name } = feature;
    const { kind, low, high, words: listed = "", most } = columns[name] ?? {};
    if (!kind) open.push(`What ${name} holds; or leave it out.`);
    if (["number", "integer"].includes(kind) && !(number(low) < number(high))) open.push(`${name}: numbers from and to, the lower first.`);
    if (["category", "ordinal", "tags"].includes(kind) && words(listed).length < 2) open.push(`${name}: two words or more.`);
    if (kind === "tags" && !(number(most) >= 1)) open.push(`${name}: at most how many words one person has.`);
  }
  return open;
}

/** The answers as the library takes them. */
function complete(draft, answers) {
  const result = { columns: {}, missing: {}, leave_out: [], private: answers.private.filter((one) => one !== "none"), classes: words(answers.classes) };
  for (const role of ["id", "source", "target"]) if (answers.roles[role]) result[role] = answers.roles[role];
  result.label = answers.roles.label ?? "";
  if (answers.directed) result.directed = answers.directed === "yes";
  if (answers.dimension) result.dimension = Number(answers.dimension);
  for (const feature of draft.features) {
    if (reserved(feature, answers)) continue;
    const { kind, low, high, words: listed = "", most, missing } = answers.columns[feature.name] ?? {};
    if (kind === "leave out") result.leave_out.push(feature.name);
    else if (kind === "yes-no") result.columns[feature.name] = "yes-no";
    else if (["number", "integer"].includes(kind)) result.columns[feature.name] = { [kind]: [number(low), number(high)] };
    else if (kind) result.columns[feature.name] = { [kind]: words(listed), ...(kind === "tags" ? { most: Number(most) } : {}) };
    if (missing && kind !== "leave out") result.missing[feature.name] = ["number", "integer"].includes(kind) ? number(missing) : missing;
  }
  return result;
}
