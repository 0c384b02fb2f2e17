#!/usr/bin/env node
// A client as a program: a JSON object a line in, one a line out, in order (docs/standard/conformance.md).
import { Buffer } from "node:buffer";

import * as device from "./dist/device.js";
import { isBy, read } from "./dist/node.js";
import { canonicalId, readIds } from "./dist/people.js";

const { hex } = device;
const NUMBERS = { NaN: NaN, Infinity: Infinity, "-Infinity": -Infinity };
/** Arrays and objects inside each other that every reader bears. */
const DEEPEST = 100;
/** Tasks that were verified, by their hash. */
const tasks = new Map();

/** A line that lacks what its operation takes. */
class BadLine extends Error {}

function need(holds) {
  if (!holds) throw new BadLine();
}
function text(value) {
  need(typeof value === "string");
  return value;
}
function bytes(value, size) {
  const found = device.unhex(value);
  need(found && (size === undefined || found.length === size));
  return found;
}
function utf8(value) {
  need(text(value).isWellFormed());
  return new TextEncoder().encode(value);
}
function whole(value, least = Number.MIN_SAFE_INTEGER, most = Number.MAX_SAFE_INTEGER) {
  need(Number.isSafeInteger(value) && least <= value && value <= most);
  return value;
}
const epochOf = (value) => whole(value, 0, 2 ** 32 - 1);

function known(task) {
  if (!tasks.has(text(task))) throw new device.DeviceError("wrong-hash");
  return tasks.get(task);
}
const person = ({ task, number, nonce }) => device.personOf(known(task), whole(number), bytes(nonce));

const isObject = (told) => typeof told === "object" && told !== null && !Array.isArray(told);

function valuesOf(told) {
  need(told !== undefined);
  if (!isObject(told)) throw new device.DeviceError("bad-value");
  const number = (one) => (typeof one === "string" && Object.hasOwn(NUMBERS, one) ? NUMBERS[one] : one);
  return Object.fromEntries(Object.entries(told).map(([kind, own]) => [kind, Array.isArray(own) ? own.map(number) : own]));
}

function seenOf(told, { fields }) {
  need(isObject(told));
  for (const [place, names] of Object.entries(told)) {
    need(/^\d$/.test(place) && fields[place] && Array.isArray(names));
    names.forEach(text);
  }
  return told;
}

function digits(value) {
  need(/^(0|[1-9]\d{0,99})$/.test(text(value)));
  return BigInt(value);
}
function billionths(value) {
  need(/^(0|[1-9]\d{0,8})(\.\d{1,9})?$/.test(text(value)));
  const [before, after = ""] = value.split(".");
  return BigInt(before + after.padEnd(9, "0"));
}

const operations = {
  canonical(line) {
    need(Object.hasOwn(line, "value"));
    return { data: hex(device.canonical(line.value)) };
  },
  parse: ({ data }) => ({ value: device.parse(bytes(data)) }),
  keeps: ({ likely, rare, epsilon }) => ({
    keeps: device.keeps(digits(likely), digits(rare), billionths(epsilon)),
  }),
  async task({ data, expected }) {
    const task = await device.readTask(utf8(data), expected === undefined ? undefined : bytes(expected));
    tasks.set(hex(task.hash), task);
    return { hash: hex(task.hash), bits: task.bits, nano: task.fields.reduce((sum, { epsilon }) => sum + epsilon, 0n) };
  },
  async opening({ task, data, joined }) {
    const opening = await device.readOpening(utf8(data), known(task));
    return { epoch: opening.epoch, nonce: hex(device.nonceOf(opening, whole(joined))) };
  },
  form: ({ id }) => ({ form: canonicalId(text(id)) }),
  ids: async ({ task, data }) => ({ ids: await readIds(bytes(data), known(task)) }),
  async assigned({ task, nonce, number, dimension, size }) {
    const asked = { task: bytes(task, 32), nonce: bytes(nonce, 16), number: whole(number, 0) };
    const columns = whole(dimension, 1, 2 ** 20);
    return { columns: await device.assigned(asked, columns, whole(size, 1, columns)) };
  },
  async answer(line) {
    const task = known(line.task);
    if (line.now !== undefined) device.requireInside(task, whole(line.now));
    const made = await device.answer(task, person(line), valuesOf(line.values), bytes(line.secret, 32));
    const nano = device.cost(task, made, [line.seen === undefined ? {} : seenOf(line.seen, task)]);
    if (line.left !== undefined && nano > whole(line.left)) throw new device.DeviceError("cap");
    return { body: hex(made.body), names: made.names, nano };
  },
  validate: (line) => ({ answers: device.answers(known(line.task), person(line), bytes(line.body)) }),
  async report({ task, epoch, body, secret, key }) {
    const made = await device.report(bytes(task, 32), epochOf(epoch), bytes(body), bytes(secret, 32), bytes(key, 32));
    return { data: hex(device.toBytes(made)) };
  },
  async read({ data, key, epoch }) {
    const [all, own, made, reports] = [bytes(data), bytes(key, 32), epochOf(epoch), []];
    for (let at = 0, one; at < all.length || !reports.length; ) {
      [one, at] = read(all, at);
      const parts = ["task", "id", "enrolment", "body"].map((name) => [name, hex(one[name])]);
      reports.push({ ...Object.fromEntries(parts), tag: await isBy(one, own, made) });
    }
    return { reports };
  },
};

/** How many arrays and objects are inside each other. */
const depth = (value) =>
  typeof value === "object" && value !== null ? 1 + Object.values(value).reduce((most, one) => Math.max(most, depth(one)), 0) : 0;

async function answered(line) {
  try {
    const facts = JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(line));
    need(depth(facts) <= DEEPEST && Object.hasOwn(operations, facts.op));
    return await operations[facts.op](facts);
  } catch (error) {
    return { error: error instanceof device.DeviceError ? error.code : "bad-line" };
  }
}

/** JSON as Python spells it: ASCII alone, and whole numbers of any size. */
function spelled(found) {
  const text = JSON.stringify(found, (_, value) => (typeof value === "bigint" ? { whole: String(value) } : value));
  const ascii = text.replace(/[\x7f-\uffff]/g, (one) => "\\u" + one.charCodeAt(0).toString(16).padStart(4, "0"));
  return ascii.replace(/\{"whole":"(\d+)"\}/g, "$1");
}

/** The bytes of each line: other readers end lines at characters that may stand inside of JSON. */
async function* linesOf(input) {
  let rest = Buffer.alloc(0);
  for await (const chunk of input) {
    rest = Buffer.concat([rest, chunk]);
    for (let end; (end = rest.indexOf(10)) >= 0; rest = rest.subarray(end + 1)) yield rest.subarray(0, end);
  }
  if (rest.length) yield rest;
}

for await (const line of linesOf(process.stdin)) {
  process.stdout.write(spelled(await answered(line)) + "\n");
}
