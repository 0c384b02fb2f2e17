/** Other sources: a file or a database is copied into a folder of tables, which is then declared like any other. */

import * as api from "./api.js";
import { el, note, points } from "./dom.js";
import { acts, button, field, files, hint, p, put, select, wrong } from "./parts.js";
import { progress } from "./watch.js";

const SOURCES = {
  file: ["A file below the studio's folder", "GraphML, node-link JSON of networkx, the arrays of a PyG Data (safetensors or npz, no pickle)."],
  list: ["A list of edges", "csv, tsv or txt, one connection a line. A table of the people as well? Then upload both as tables."],
  database: ["A database", "SQLite or PostgreSQL: one query for the people, one for the connections."],
};

export function imports(body, app) {
  const needs = el("div", {});
  const status = el("div", { role: "status" });
  const folder = el("input", { value: "imported", spellcheck: "false", autocomplete: "off" });
  const inputs = {};
  const input = (key, name, hint, control = el("input", { spellcheck: "false", autocomplete: "off" })) => {
    inputs[key] = control;
    return field(name, control, hint);
  };
  const show = (kind) => {
    for (const key of Object.keys(inputs)) delete inputs[key];
    const address = "sqlite:///graphs/friends.sqlite or postgresql://user@host/database; a password belongs in ~/.pgpass.";
    const path = "Its path below the studio's folder, such as graphs/friends.graphml.";
    const parts = [hint(SOURCES[kind][1]), kind === "database" ? input("source", "Database", address) : input("source", "File", path)];
    if (kind === "database") {
      parts.push(input("nodes_query", "Query for the people", "SELECT id, age, team FROM people", el("textarea", { rows: "2", spellcheck: "false" })));
      parts.push(input("edges_query", "Query for the connections", "SELECT source, target FROM calls", el("textarea", { rows: "2", spellcheck: "false" })));
    }
    put(needs, parts);
  };
  const send = async (event) => {
    event.preventDefault();
    const values = Object.fromEntries(Object.entries(inputs).map(([key, control]) => [key, control.value.trim()]).filter(([, value]) => value));
    if (!folder.value.trim() || Object.keys(values).length < Object.keys(inputs).length) {
      return put(status, note("care", "Something is still empty.", p("Each field above is needed.")));
    }
    put(status);
    try {
      const { id } = await api.post("jobs", { job: "import", folder: folder.value.trim(), ...values });
      progress(status, id, { done: (job) => put(status, arrived(job, folder.value.trim(), app)) });
    } catch (error) {
      put(status, wrong(error, "It was not copied."));
    }
    return null;
  };
  const kind = select(Object.entries(SOURCES).map(([key, [name]]) => [key, name]), "file", show);
  show("file");
  body.append(
    p(el("a", { href: "#data" }, "← All data")),
    el("form", { submit: send, novalidate: true },
      field("Where is the graph?", kind), needs, field("Name of a new folder", folder),
      acts(el("button", { class: "main" }, "Copy it into the folder")), status),
  );
}

function arrived(job, folder, app) {
  const notes = job.answer?.notes ?? [];
  const onward = button("Say what is in it", () => app.go(`data/declare/${folder}`), "main");
  return [p("The graph is copied into tables."), notes.length ? points(notes) : [], acts(onward), files(job.command)];
}
