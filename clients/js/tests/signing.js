// Signed tasks for tests, with thresholds a little wider than their epsilon asks for.
import { createPrivateKey, createPublicKey, sign } from "node:crypto";

import { canonical, hex, readOpening, readTask } from "../dist/device.js";

export const MOODS = ["calm", "glad", "sad"];
export const PURPOSE = "graphveil/standard/2/";
export const secretOf = (number) => Uint8Array.from({ length: 32 }, (_, place) => (number >> (8 * (place % 4))) & 255);

// Noise follows from the key, through the hash of the task: with another one each time laws would fail now and then.
const SEED = Buffer.from("302e020100300506032b657004220420" + "07".repeat(32), "hex");
const KEY = createPrivateKey({ key: SEED, format: "der", type: "pkcs8" });
const PUBLIC = createPublicKey(KEY).export({ format: "jwk" }).x;

/** A text of 2^64 times a share. */
const text = (share) => String(BigInt(Math.ceil(share * 2 ** 53)) << 11n);

export const label = (epsilon = 1) => ({
  kind: "label",
  classes: MOODS,
  epsilon: String(epsilon),
  share: text(1.0001 / (Math.exp(epsilon) + MOODS.length - 1)),
});

export const links = (epsilon = 1, mode = "both") => ({
  kind: "links",
  mode,
  epsilon: String(epsilon),
  threshold: text(1.0001 / (Math.exp(epsilon) + 1)),
});

export const features = (epsilon = 2, dimension = 6, sampled = 1) => ({
  kind: "features",
  names: Array.from({ length: dimension }, (_, place) => `f${place}`),
  low: "-1",
  high: "3",
  epsilon: String(epsilon),
  sampled,
  threshold: text(1.0001 / (Math.exp(epsilon / sampled) + 1)),
});

export function signed(name, value) {
  const key = Buffer.from(PUBLIC, "base64url");
  const told = Buffer.concat([Buffer.from(`${PURPOSE}${name}\n`), key, canonical(value)]);
  return canonical({ key: hex(key), signature: hex(sign(null, told, KEY)), [name]: value });
}

export function facts(fields, changes = {}) {
  const words = Object.fromEntries(["name", "organiser", "purpose", "contact", "ids", "nonce"].map((one) => [one, one]));
  const numbers = { version: 2, opens: 0, closes: 2_000_000_000, least: 5, people: 12 };
  return { ...words, ...numbers, fields, guarantee: ["one"], public: [], ...changes };
}

export const taskOf = (fields, changes) => readTask(signed("task", facts(fields, changes)));

export const openingOf = (task, nonces = ["00".repeat(16)]) =>
  readOpening(signed("opening", { task: hex(task.hash), nonces }), task);
