#!/usr/bin/env node
// A client as a program: a JSON object a line in, one a line out, in order (docs/standard/conformance.md).
import { createInterface } from "node:readline";

import * as device from "./dist/device.js";
import { isBy, read } from "./dist/node.js";

const { hex } = device;
const NUMBERS = { NaN: NaN, Infinity: Infinity, "-Infinity": -Infinity };
/** Tasks that were verified, by their hash. */
const tasks = new Map();

/** A line that lacks what its operation takes. */
class BadLine extends Error {}

function taken(value, type) {
  if (typeof value !== type || (type === "number" && !Number.isInteger(value))) throw new BadLine();
  return value;
}
const bytes = (value) => {
  const found = device.unhex(value);
  if (!found) throw new BadLine();
  return found;
};
const utf8 = (value) => new TextEncoder().encode(taken(value, "string"));
const whole = (value) => taken(value, "number");

function known(task) {
  if (!tasks.has(taken(task, "string"))) throw new device.DeviceError("wrong-hash");
  return tasks.get(task);
}
const person = ({ task, number, nonce }) => device.personOf(known(task), whole(number), bytes(nonce));

function valuesOf(told) {
  if (typeof told !== "object" || told === null || Array.isArray(told)) throw new device.DeviceError("bad-value");
  const number = (one) => (Object.hasOwn(NUMBERS, one) ? NUMBERS[one] : one);
  return Object.fromEntries(Object.entries(told).map(([kind, own]) => [kind, Array.isArray(own) ? own.map(number) : own]));
}

function billionths(text) {
  const [before, after = ""] = taken(text, "string").split(".");
  if (after.length > 9) throw new BadLine();
  return BigInt(before + after.padEnd(9, "0"));
}

const operations = {
  canonical(line) {
    if (!Object.hasOwn(line, "value")) throw new BadLine();
    return { data: hex(device.canonical(line.value)) };
  },
  parse: ({ data }) => ({ value: device.parse(bytes(data)) }),
  keeps: ({ likely, rare, epsilon }) => ({
    keeps: device.keeps(BigInt(taken(likely, "string")), BigInt(taken(rare, "string")), billionths(epsilon)),
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
  async assigned({ task, nonce, number, dimension, size }) {
    const asked = { task: bytes(task), nonce: bytes(nonce), number: whole(number) };
    return { columns: await device.assigned(asked, whole(dimension), whole(size)) };
  },
  async answer(line) {
    const task = known(line.task);
    if (line.now !== undefined) device.requireInside(task, whole(line.now));
    const made = await device.answer(task, person(line), valuesOf(line.values), bytes(line.secret));
    const nano = device.cost(task, made, [line.seen ?? {}]);
    if (line.left !== undefined && nano > whole(line.left)) throw new device.DeviceError("cap");
    return { body: hex(made.body), names: made.names, nano };
  },
  validate: (line) => ({ answers: device.answers(known(line.task), person(line), bytes(line.body)) }),
  async report({ task, epoch, body, secret, key }) {
    const made = await device.report(bytes(task), whole(epoch), bytes(body), bytes(secret), bytes(key));
    return { data: hex(device.toBytes(made)) };
  },
  async read({ data, key, epoch }) {
    const [all, own, made, reports] = [bytes(data), bytes(key), whole(epoch), []];
    for (let at = 0, one; at < all.length || !reports.length; ) {
      [one, at] = read(all, at);
      const parts = ["task", "id", "enrolment", "body"].map((name) => [name, hex(one[name])]);
      reports.push({ ...Object.fromEntries(parts), tag: await isBy(one, own, made) });
    }
    return { reports };
  },
};

async function answered(line) {
  try {
    const facts = JSON.parse(line);
    if (!Object.hasOwn(operations, facts.op)) throw new BadLine();
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

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  process.stdout.write(spelled(await answered(line)) + "\n");
}
