/** Bytes: joined, spelled, hashed. */

export type Bytes = Uint8Array<ArrayBuffer>;

/** Return a key of the platform's cryptography, which nobody can read. */
export const imported = (raw: Bytes, algorithm: AlgorithmIdentifier | HmacImportParams, ...uses: KeyUsage[]): Promise<CryptoKey> =>
  crypto.subtle.importKey("raw", raw, algorithm, false, uses);

export const utf8 = (text: string): Bytes => new TextEncoder().encode(text);

/** Return the text of bytes; throws where they are not UTF-8. */
export const fromUtf8 = (data: Bytes): string => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data);

/** Return parts, one after the other. */
export const joined = (...parts: Iterable<number>[]): Bytes => Uint8Array.from(parts.flatMap((part) => [...part]));

/** Return a whole number as `width` bytes, 8 at most, the highest first. */
export function big(number: number | bigint, width: number): Bytes {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(number));
  return bytes.slice(8 - width);
}

/** Return the whole number of 8 bytes that begins at a place. */
export const word = ({ buffer, byteOffset }: Bytes, at = 0): bigint => new DataView(buffer, byteOffset).getBigUint64(at);

/** Return bytes as a text of so many digits each, in base 2^(8 / digits). */
export const spell = (bytes: Iterable<number>, digits: number): string =>
  Array.from(bytes, (byte) => byte.toString(2 ** (8 / digits)).padStart(digits, "0")).join("");

/** Return the bytes that a text spells, so many digits each; the last one is filled with zeros. */
export const spelled = (text: string, digits: number): Bytes =>
  Uint8Array.from(text.match(RegExp(`.{1,${digits}}`, "g")) ?? [], (part) =>
    parseInt(part.padEnd(digits, "0"), 2 ** (8 / digits)),
  );

/** Return bytes as a hexadecimal text. */
export const hex = (bytes: Iterable<number>): string => spell(bytes, 2);

/** Return the bytes of a hexadecimal text; undefined where it is none. */
export const unhex = (text: unknown): Bytes | undefined =>
  typeof text === "string" && /^([\da-f]{2}|[\t-\r ])*$/i.test(text) ? spelled(text.replace(/\s/g, ""), 2) : undefined;

export const sha256 = async (data: Bytes): Promise<Bytes> => new Uint8Array(await crypto.subtle.digest("SHA-256", data));
