// What a device answers has the law of the standard.
//
// Chi-square statistics of two or three counts against exact probabilities; each is refused above its 1 - 1e-6 quantile
// (23.9 with one degree of freedom, 27.6 with two), so a test of a right device fails once in a million runs.  The noise
// follows from secrets that are fixed here, so none fails by chance.
//
// A million bits of lists and not a million reports: as many labels, each under keys of its own, take a quarter of an hour.
import assert from "node:assert/strict";
import test from "node:test";

import { answer, answers, personOf } from "../dist/device.js";
import { features, label, links, MOODS, secretOf, taskOf } from "./signing.js";

const NONCE = new Uint8Array(16);
const QUANTILES = { 2: 23.93, 3: 27.64 };

function far(counts, chances) {
  const total = counts.reduce((sum, count) => sum + count, 0);
  const parts = counts.map((count, place) => (count - chances[place] * total) ** 2 / (chances[place] * total));
  return parts.reduce((sum, part) => sum + part, 0) > QUANTILES[counts.length];
}

test("a million bits of lists are flipped as often as the threshold says", async () => {
  const [people, devices] = [100_000, 10];
  const task = await taskOf([links()], { people });
  const person = personOf(task, 7, NONCE);
  const named = new Set(Array.from({ length: 500 }, (_, place) => 50 + 31 * place));
  const flips = { true: 0, false: 0 };
  for (let device = 1; device <= devices; device++) {
    const { body } = await answer(task, person, { links: [...named] }, secretOf(device));
    const [bits] = answers(task, person, body);
    assert.equal(bits[7], "0");
    for (let other = 0; other < people; other++) if (other !== 7) flips[(bits[other] === "1") !== named.has(other)]++;
  }
  const flip = Number(BigInt(task.facts.fields[0].threshold)) / 2 ** 64;
  assert(!far([flips.true, flips.false], [flip, 1 - flip]));
  // A threshold with one part in a hundred less noise, or more, is told from it.
  for (const weaker of [0.99, 1.01]) assert(far([flips.true, flips.false], [flip * weaker, 1 - flip * weaker]));
});

test("a label has the law of randomized response", async () => {
  const task = await taskOf([label()]);
  const person = personOf(task, 0, NONCE);
  const counts = [0, 0, 0];
  for (let device = 1; device <= 5000; device++) {
    const { body } = await answer(task, person, { label: "glad" }, secretOf(device));
    counts[parseInt(answers(task, person, body)[0], 2)]++;
  }
  const share = Number(BigInt(task.facts.fields[0].share)) / 2 ** 64;
  const chances = (own) => MOODS.map((mood) => (mood === "glad" ? 1 - 2 * own : own));
  assert(!far(counts, chances(share)));
  assert(far(counts, chances(share * 0.8)));
});

test("a feature has the law of multi-bit", async () => {
  const task = await taskOf([features(500, 500, 500)]);
  const person = personOf(task, 3, NONCE);
  const values = Array(500).fill(0.5);
  const counts = [0, 0];
  for (let device = 1; device <= 100; device++) {
    const { body } = await answer(task, person, { features: values }, secretOf(device));
    for (const bit of answers(task, person, body)[0]) counts[bit]++;
  }
  const low = Number(BigInt(task.facts.fields[0].threshold)) / 2 ** 64;
  const one = (least) => least + (1 - 2 * least) * 0.375;
  assert(!far(counts, [1 - one(low), one(low)]));
  assert(far(counts, [1 - one(low * 0.8), one(low * 0.8)]));
});
