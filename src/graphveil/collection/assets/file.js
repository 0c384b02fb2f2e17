/** A person's own file, read here: answers as JSON, or a table of numbers. */

import { Refused } from "./collector.js";
import { readNumbers } from "./numbers-form.js";

/** Return the values of a file, by kind; refused with "bad-file". */
export async function readFile(file, task) {
  const text = (await file.text()).replace(/^\uFEFF/, "");
  const asked = task.facts.fields.find(({ kind }) => kind === "features");
  if (!file.name.endsWith(".json") && asked) return { features: readNumbers(text, asked.names).map(Number) };
  try {
    const values = JSON.parse(text);
    if (values && typeof values === "object" && !Array.isArray(values)) return values;
  } catch {
    // As any other file that is no object.
  }
  throw new Refused("bad-file");
}
