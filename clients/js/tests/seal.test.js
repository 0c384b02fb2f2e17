// A ledger in a folder that lost an entry, or holds another one, is refused; whatever crashes, it goes on.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";

import { book, DeviceError } from "../dist/device.js";
import { FolderLedger } from "../dist/node.js";
import { label, openingOf, secretOf, taskOf } from "./signing.js";

const WHO = { number: 3, joined: 1, secret: secretOf(5), key: secretOf(6) };
const entry = (text) => ({ task: text, epoch: 1, nonce: "", body: "", names: {}, nano: "1" });
const refused = (error) => error instanceof DeviceError && error.code === "ledger";

function folder(t) {
  const made = mkdtempSync(join(tmpdir(), "sealed-"));
  t.after(() => rmSync(made, { recursive: true }));
  return made;
}

/** A folder in which three entries were booked, and the paths of its files. */
async function three(t) {
  const path = folder(t);
  for (const place of [0, 1, 2]) assert(await new FolderLedger(path).append(place, entry(`${place}`)));
  return [path, [0, 1, 2].map((place) => join(path, `00000000${place}.json`)), join(path, "ledger.seal")];
}

test("a ledger that forgot is refused, and books nothing more", async (t) => {
  const spoils = {
    "the last entry is gone": ([, , last]) => rmSync(last),
    "two are": ([, ...others]) => others.forEach((one) => rmSync(one)),
    "all are": (entries) => entries.forEach((one) => rmSync(one)),
    "one in the middle is": ([, middle]) => rmSync(middle),
    "one is another": ([first]) => writeFileSync(first, JSON.stringify({ ...entry("0"), nano: "0" })),
    "two are swapped": ([first, , last]) => (copyFileSync(first, `${first}.x`), copyFileSync(last, first), copyFileSync(`${first}.x`, last)),
    "the seal is gone": (_, seal) => rmSync(seal),
    "the seal is cut": (_, seal) => writeFileSync(seal, readFileSync(seal).subarray(0, 20)),
    "the seal is empty": (_, seal) => writeFileSync(seal, ""),
  };
  const task = await taskOf([label()]);
  const opening = await openingOf(task);
  for (const [name, spoil] of Object.entries(spoils)) {
    const [path, entries, seal] = await three(t);
    spoil(entries, seal);
    const before = readdirSync(path).length;
    await assert.rejects(new FolderLedger(path).booked(), refused, name);
    await assert.rejects(book(task, opening, WHO, { label: "sad" }, new FolderLedger(path)), refused, name);
    assert.equal(readdirSync(path).length, before);
  }
});

test("a crash between an entry and its seal loses nothing", async (t) => {
  const path = folder(t);
  const [first, seal] = [join(path, "000000000.json"), join(path, "ledger.seal")];
  writeFileSync(first, JSON.stringify(entry("0")));
  assert.equal((await new FolderLedger(path).booked()).length, 1);
  const older = readFileSync(seal);
  await new FolderLedger(path).append(1, entry("1"));
  const newer = readFileSync(seal, "utf8");
  writeFileSync(seal, older);
  assert.equal((await new FolderLedger(path).booked()).length, 2);
  // Whoever reads it seals it: the entry that has no seal of its own cannot be lost from then on.
  assert.equal(readFileSync(seal, "utf8"), newer);
  rmSync(join(path, "000000001.json"));
  await assert.rejects(new FolderLedger(path).booked(), refused);
});

const WRITER = `
import { FolderLedger } from "${new URL("../dist/node.js", import.meta.url)}";
const [path, name] = process.argv.slice(1);
const ledger = new FolderLedger(path);
for (let made = 0; made < 20; ) {
  const booked = await ledger.booked();
  made += await ledger.append(booked.length, { task: name, epoch: made, nonce: "", body: "", names: {}, nano: "1" });
}
`;

test("many that write at once, and some that are killed, leave a whole ledger", async (t) => {
  const path = folder(t);
  const children = [0, 1, 2, 3, 4].map((name) => spawn(process.execPath, ["--input-type=module", "-e", WRITER, "--", path, `${name}`]));
  const said = children.map(() => "");
  children.forEach((child, place) => child.stderr.on("data", (data) => (said[place] += data)));
  setTimeout(() => children.slice(3).forEach((child) => child.kill("SIGKILL")), 300);
  await Promise.all(children.map((child) => once(child, "close")));
  assert.deepEqual(said, children.map(() => ""));
  const booked = await new FolderLedger(path).booked();
  for (const name of ["0", "1", "2"]) assert.equal(booked.filter(({ task }) => task === name).length, 20);
  assert.equal(JSON.parse(readFileSync(join(path, "ledger.seal"), "utf8")).entries, booked.length);
});
