// Booked before it leaves, the same report for ever after, whatever crashes or runs beside it.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";

import { answer, book, DeviceError, hex, personOf, preview, readTask, spent, toBytes } from "../dist/device.js";
import { FolderLedger, isBy, read } from "../dist/node.js";
import { features, facts, label, links, openingOf, secretOf, signed, taskOf } from "./signing.js";

const SECRET = secretOf(5);
const WHO = { number: 3, joined: 1, secret: SECRET, key: secretOf(6) };
const NANO = 10n ** 9n;
const refused = (code) => (error) => error instanceof DeviceError && error.code === code;

function folder(t) {
  const made = mkdtempSync(join(tmpdir(), "ledger-"));
  t.after(() => rmSync(made, { recursive: true }));
  return join(made, "device");
}

test("a report is booked once and stays the same", async (t) => {
  const [task, ledger] = [await taskOf([features(), label()]), new FolderLedger(folder(t))];
  const opening = await openingOf(task);
  const values = { features: Array(6).fill(0.5), label: "sad" };
  const first = await book(task, opening, WHO, values, ledger);
  assert.equal(spent(await ledger.booked()), 3n * NANO);
  // Whatever the values are now: the epoch has its report.
  assert.deepEqual(await book(task, opening, WHO, { label: "glad" }, ledger), first);
  // Equal values in a later epoch are the same answers, under another id, at no price; a new label alone is paid for.
  const later = await openingOf(task, ["00".repeat(16), "01".repeat(16)]);
  assert.equal((await preview(task, later, WHO, { ...values, label: "glad" }, await ledger.booked())).nano, String(NANO));
  const again = await book(task, later, WHO, values, ledger);
  assert.deepEqual(again.body, first.body);
  assert.notDeepEqual(again.id, first.id);
  assert.equal(spent(await ledger.booked()), 3n * NANO);
  const [back, next] = read(toBytes(again));
  assert.deepEqual(back, again);
  assert.equal(next, toBytes(again).length);
  assert(await isBy(back, WHO.key, later.epoch));
  assert(!(await isBy(back, WHO.key, opening.epoch)) && !(await isBy(back, SECRET, later.epoch)));
});

test("a task that is signed twice is answered once", async (t) => {
  const [first, again] = [await taskOf([label()], { nonce: "one" }), await taskOf([label()], { nonce: "two" })];
  const ledger = new FolderLedger(folder(t));
  const answers = async (task, cap) => book(task, await openingOf(task), WHO, { label: "sad" }, ledger, cap);
  await answers(first);
  await assert.rejects(answers(again), refused("cap"));
  await assert.rejects(answers(again, (3n * NANO) / 2n), refused("cap"));
  // What was booked, and another round of it, as ever.
  await answers(first);
  await book(first, await openingOf(first, ["00".repeat(16), "01".repeat(16)]), WHO, { label: "glad" }, ledger);
  await answers(again, 3n * NANO);
  assert.equal(spent(await ledger.booked()), 3n * NANO);
});

test("nothing is booked outside the window, and what was booked is sent at any time", async (t) => {
  const [task, ledger] = [await taskOf([label()]), new FolderLedger(folder(t))];
  const opening = await openingOf(task);
  const at = (now) => book(task, opening, WHO, { label: "sad" }, ledger, undefined, now);
  await assert.rejects(at(-1), refused("not-open"));
  await assert.rejects(at(2e9), refused("closed"));
  assert.equal((await ledger.booked()).length, 0);
  assert.deepEqual(await at(2e9 - 1), await at(2e9));
});

test("other coordinates are never asked of one device", async (t) => {
  const [task, ledger] = [await taskOf([features()]), new FolderLedger(folder(t))];
  const values = { features: Array(6).fill(0.5) };
  await book(task, await openingOf(task), WHO, values, ledger);
  const other = await openingOf(task, ["02".repeat(16), "03".repeat(16)]);
  await assert.rejects(book(task, other, WHO, values, ledger), refused("bad-opening"));
});

test("a list costs twice its epsilon at most, and one's own limit is kept", async (t) => {
  const [task, ledger] = [await taskOf([links()]), new FolderLedger(folder(t))];
  const nonces = [1, 2, 3, 4].map((epoch) => hex(Array(16).fill(epoch)));
  for (const [place, named] of [[5], [5, 6], [7], []].entries()) {
    const opening = await openingOf(task, nonces.slice(0, place + 1));
    await book(task, opening, WHO, { links: named }, ledger, 2n * NANO);
  }
  assert.equal(spent(await ledger.booked()), 2n * NANO);
  const more = await taskOf([label()]);
  await assert.rejects(book(more, await openingOf(more), WHO, { label: "sad" }, ledger, 2n * NANO), refused("cap"));
  assert.equal((await ledger.booked()).length, 4);
});

test("values that are not as declared are refused, and nothing is booked", async (t) => {
  const [task, ledger] = [await taskOf([features(), label(), links()]), new FolderLedger(folder(t))];
  const opening = await openingOf(task);
  const five = Array(5).fill(0);
  const bad = [five, [...five, 3.1], [...five, NaN], [...five, -Infinity], [...five, "1"], [...five, true], "012345", { f0: 1 }];
  const values = bad.map((one) => ({ features: one })).concat({ label: "angry" }, { label: 0 }, { income: 3 });
  const lists = [[3], [12], [-1], [5, 5], [0.5], [true], ["5"], "5", 5].map((one) => ({ links: one }));
  for (const one of values.concat(lists)) {
    await assert.rejects(book(task, opening, WHO, one, ledger), refused("bad-value"), JSON.stringify(one));
  }
  assert.deepEqual(await ledger.booked(), []);
});

test("names, arrays, zeros of either sign and a hidden secret make no difference", async () => {
  const task = await taskOf([features(2, 6, 6)]);
  const person = personOf(task, 0, new Uint8Array(16));
  const key = await crypto.subtle.importKey("raw", SECRET, "HKDF", false, ["deriveBits"]);
  const named = Object.fromEntries(Array.from({ length: 6 }, (_, place) => [`f${place}`, 0]));
  const first = await answer(task, person, { features: named }, SECRET);
  assert.deepEqual(await answer(task, person, { features: Array(6).fill(-0) }, SECRET), first);
  assert.deepEqual(await answer(task, person, { features: Array(6).fill(0) }, key), first);
});

test("one part in a thousand less noise than an epsilon asks for is refused", async () => {
  for (const [field, name] of [[features(), "threshold"], [label(), "share"], [links(), "threshold"]]) {
    const weaker = { ...field, [name]: String((BigInt(field[name]) * 999n) / 1000n) };
    await assert.rejects(taskOf([weaker]), refused("epsilon"));
    await taskOf([field]);
  }
});

test("a platform that cannot check signatures is told from a signature that is wrong", async (t) => {
  const data = signed("task", facts([label()]));
  const refuse = () => Promise.reject(new DOMException("Unrecognized name.", "NotSupportedError"));
  t.mock.method(crypto.subtle, "importKey", refuse);
  await assert.rejects(readTask(data), refused("no-ed25519"));
  t.mock.restoreAll();
  const last = data.length - 3;
  await assert.rejects(readTask(data.with(last, data[last] ^ 1)), (error) => error.code !== "no-ed25519");
  await readTask(data);
});

test("an entry that cannot be read, or is missing, is said", async (t) => {
  const path = folder(t);
  const [task, ledger] = [await taskOf([label()]), new FolderLedger(path)];
  await book(task, await openingOf(task), WHO, { label: "sad" }, ledger);
  writeFileSync(join(path, "000000001.json"), "{");
  await assert.rejects(ledger.booked(), refused("ledger"));
  rmSync(join(path, "000000000.json"));
  await assert.rejects(ledger.booked(), refused("ledger"));
});

const WRITER = `
import { book, readOpening, readTask, toBytes } from "${new URL("../dist/device.js", import.meta.url)}";
import { FolderLedger } from "${new URL("../dist/node.js", import.meta.url)}";
const [path, task, opening, key, value] = process.argv.slice(1);
const bytes = (text) => Uint8Array.from(Buffer.from(text, "hex"));
const asked = await readTask(bytes(task));
const who = { number: 3, joined: 1, secret: bytes(key), key: bytes(key) };
const ledger = new FolderLedger(path);
process.stdout.write("ready\\n");
const made = await book(asked, await readOpening(bytes(opening), asked), who, { label: value }, ledger);
process.stdout.write(Buffer.from(toBytes(made)).toString("hex"));
`;

function writer(path, task, opening, value) {
  const told = [path, hex(task), hex(opening), hex(SECRET), value];
  const child = spawn(process.execPath, ["--input-type=module", "-e", WRITER, "--", ...told]);
  child.said = "";
  child.stdout.on("data", (data) => (child.said += data));
  return child;
}

test("of many that write at once all send one report, and those that are killed leave nothing half made", async (t) => {
  const path = folder(t);
  const data = signed("task", facts([label()]));
  const task = await taskOf([label()]);
  const opening = signed("opening", { task: hex(task.hash), nonces: ["00".repeat(16)] });
  const children = ["sad", "glad", "calm", "sad", "glad", "calm"].map((value) => writer(path, data, opening, value));
  children.slice(4).forEach((child) => child.stdout.once("data", () => child.kill("SIGKILL")));
  await Promise.all(children.map((child) => once(child, "close")));
  const sent = children.filter((child) => child.signalCode === null).map((child) => child.said.split("\n")[1]);
  assert(sent.length >= 4);
  assert.equal(new Set(sent).size, 1);
  assert.equal((await new FolderLedger(path).booked()).length, 1);
  // Whoever comes later, with whatever value, sends it again.
  const last = writer(path, data, opening, "calm");
  await once(last, "close");
  assert.equal(last.said.split("\n")[1], sent[0]);
  assert.equal(readdirSync(path).filter((name) => name.endsWith(".json")).length, 1);
});
