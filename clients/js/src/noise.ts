/**
 * Permanent noise: words that follow from a device's secret, the task, the field, the part and its value.
 *
 *     key   = HKDF-SHA256(secret, no salt, info = purpose | task hash (32) | number (4))
 *     block = AES-256(key, value (8) | part (8))            big-endian; the keystream of AES-CTR from that counter
 *     word  = the first 8 bytes of a block, big-endian
 */

import { big, type Bytes, imported, joined, utf8, word } from "./bytes.js";

/** What is asked of a key: the value of a part, and the part. */
export type Pair = readonly [value: number | bigint, part: number];
/** 32 bytes of the platform's randomness, or a key for HKDF that nobody can read. */
export type Secret = Bytes | CryptoKey;

/** Parts of one value that one call draws: it costs about as much as a few hundred blocks that nobody asked for. */
const RUN = 256;

/** Return a 32-byte key that tells nothing of the secret or of other keys. */
export async function derived(
  secret: Secret,
  purpose: "noise" | "name" | "report",
  task: Bytes,
  number: number,
): Promise<Bytes> {
  const key = secret instanceof CryptoKey ? secret : await imported(secret, "HKDF", "deriveBits");
  const info = joined(utf8("graphveil/standard/2/" + purpose), task, big(number, 4));
  const told = { name: "HKDF", hash: "SHA-256", salt: new Uint8Array(), info };
  return new Uint8Array(await crypto.subtle.deriveBits(told, key, 256));
}

/** Return a block of 16 bytes for each pair. */
export async function blocks(key: Bytes, pairs: readonly Pair[]): Promise<Bytes[]> {
  const aes = await imported(key, "AES-CTR", "encrypt");
  const streams = new Map<string, ArrayBuffer>();
  const begins = ([value, part]: Pair) => `${value} ${part - (part % RUN)}`;
  const drawn = [...new Set(pairs.map(begins))].map(async (begin) => {
    const counter = joined(...begin.split(" ").map((number) => big(BigInt(number), 8)));
    streams.set(begin, await crypto.subtle.encrypt({ name: "AES-CTR", counter, length: 128 }, aes, new Uint8Array(16 * RUN)));
  });
  await Promise.all(drawn);
  return pairs.map((pair) => new Uint8Array(streams.get(begins(pair))!, 16 * (pair[1] % RUN), 16));
}

/** Return a uniform word of 64 bits for each pair. */
export const words = async (key: Bytes, pairs: readonly Pair[]): Promise<bigint[]> =>
  (await blocks(key, pairs)).map((block) => word(block));
