/**
 * What is asked, of whom, by whom and at which price: one immutable value, known by the hash of its canonical bytes.
 *
 *     {"key": KEY, "signature": SIGNATURE, "task": TASK}             canonical JSON
 *     signature by Ed25519 over purpose | KEY | canonical(TASK)      hash = SHA-256 of the same bytes
 *
 * Who was told the hash was told the key: nobody else's task has it. An opening says that enrolment has closed; it is
 * signed with the same key and draws the nonce by which coordinates are assigned.
 */

import { type Bytes, hex, imported, joined, sha256, unhex, utf8 } from "./bytes.js";
import { canonical, parse } from "./canonical.js";
import { degree } from "./degree.js";
import { refuse, require } from "./errors.js";
import { features } from "./features.js";
import type { Field, Reader } from "./field.js";
import { label } from "./label.js";
import { links } from "./links.js";
import type { Person } from "./person.js";
import { areOf, type Facts, isFacts, nano, text, texts, whole } from "./reading.js";

/** What a task says; the first six are texts. */
const FACTS = "name organiser purpose contact ids nonce version opens closes least people fields guarantee public".split(" ");
/** Kinds of fields; what a task says of one beside kind and epsilon, and who reads it. */
const FIELDS: Readonly<Record<string, readonly [names: string, of: Reader]>> = {
  __proto__: null as never,
  features: ["names low high sampled threshold", features],
  label: ["classes share", label],
  links: ["mode threshold", links],
  degree: ["mode digits overflow lowest highest", degree],
};
const LARGEST = 2 ** 40;

/** A task whose facts were checked; `facts` are in the words of the standard. */
export interface Task {
  readonly hash: Bytes;
  /** The organiser's. */
  readonly key: Bytes;
  readonly facts: Facts;
  readonly people: number;
  readonly fields: readonly Field[];
  /** Of a body: for each field whether it is answered, and the answer. */
  readonly bits: number;
}

/** An epoch of a task has opened; `nonces` are of the people who enrolled before each epoch and after the last. */
export interface Opening {
  readonly epoch: number;
  readonly nonces: readonly Bytes[];
}

/**
 * Return the task of signed bytes, `expected` being the hash that a person was told through another channel.
 *
 * Refuses: `not-canonical`, `bad-version`, `bad-signature`, `wrong-hash`, `bad-task`, or `epsilon` where the thresholds lose more than
 * the epsilons that are stated; `no-ed25519` where the platform cannot check signatures.
 */
export async function readTask(data: Bytes, expected?: Bytes): Promise<Task> {
  const [facts, key, told] = await signed(data, "task");
  const hash = await sha256(told);
  require(!expected || hex(hash) === hex(expected), "wrong-hash", hex(hash));
  require(areOf(facts, FACTS), "bad-task");
  const people = Number(whole(facts, "people", 1, LARGEST));
  for (const name of FACTS.slice(0, 6)) text(facts, name);
  whole(facts, "closes", whole(facts, "opens", 0, LARGEST) + 1n, LARGEST);
  whole(facts, "least", 1, people);
  texts(facts, "guarantee");
  texts(facts, "public");
  const fields = fieldsOf(facts.fields, people);
  // No threshold is trusted: whoever signs a task may be mistaken, or lie about its epsilon.
  for (const one of fields) require(one.kept(), "epsilon", one.kind);
  return { hash, key, facts, people, fields, bits: fields.reduce((sum, { width }) => sum + 1 + width, 0) };
}

/** Return the opening of signed bytes; refuses `not-canonical`, `bad-signature`, `bad-opening` or `wrong-hash`. */
export async function readOpening(data: Bytes, task: Task): Promise<Opening> {
  const [facts, key] = await signed(data, "opening");
  // Or the collector could draw a nonce of its own for one person and ask for other coordinates.
  require(hex(key) === hex(task.key), "bad-signature");
  require(facts.task === hex(task.hash), "wrong-hash");
  require(areOf(facts, ["task", "nonces"]), "bad-opening");
  const nonces = texts(facts, "nonces").map((one) => unhex(one) ?? []);
  const right = nonces.length && nonces.every((one) => one.length === 16) && new Set(nonces.map(hex)).size === nonces.length;
  require(right, "bad-opening");
  return { epoch: nonces.length, nonces: nonces as Bytes[] };
}

/** Refuse a moment, in seconds since 1970, outside a task's window: `not-open` or `closed`. */
export function requireInside({ facts: { opens, closes } }: Task, now: number): void {
  require(now >= Number(opens), "not-open", opens);
  require(now < Number(closes), "closed", closes);
}

/** Return the nonce of the people who joined at an epoch. */
export function nonceOf(opening: Opening, joined: number): Bytes {
  return opening.nonces[joined - 1] ?? refuse("bad-opening", joined);
}

/** Return where a person stands. */
export function personOf({ hash, people }: Task, number: number, nonce: Bytes): Person {
  const right = Number.isInteger(number) && number >= 0 && number < people && nonce.length === 16;
  require(right, "bad-task", number);
  return { task: hash, people, number, nonce };
}

/** What was signed, by which key, and the bytes that were. */
async function signed(data: Bytes, name: "task" | "opening"): Promise<[Facts, Bytes, Bytes]> {
  const outer = parse(data);
  require(areOf(outer, ["key", "signature", name]) && isFacts(outer[name]), "bad-task", name);
  const { version = 2 } = outer[name];
  // Before the signature: another version signs other bytes.
  require(version === 2, "bad-version", version);
  const key = unhex(outer.key);
  const signature = unhex(outer.signature);
  const told = joined(utf8(`graphveil/standard/2/${name}\n`), key ?? [], canonical(outer[name]));
  require(key && signature && (await verified(key, signature, told)), "bad-signature", name);
  return [outer[name], key, told];
}

const verified = (key: Bytes, signature: Bytes, told: Bytes): Promise<boolean> =>
  imported(key, "Ed25519", "verify")
    .then((key) => crypto.subtle.verify("Ed25519", key, signature, told))
    .catch(({ name }: Error) => name === "NotSupportedError" && refuse("no-ed25519"));

function fieldsOf(told: unknown, people: number): Field[] {
  require(Array.isArray(told) && told.length, "bad-task");
  const made = told.map((facts: unknown) => {
    const kind = text(facts as Facts, "kind") as Field["kind"];
    const [names, of] = FIELDS[kind] ?? refuse("bad-task", kind);
    require(areOf(facts, `kind epsilon ${names}`.split(" ")), "bad-task", kind);
    const epsilon = nano(facts, "epsilon");
    return { kind, epsilon, most: Infinity, ...of(facts, epsilon, people) };
  });
  require(new Set(made.map(({ kind }) => kind)).size === made.length, "bad-task");
  return made;
}
