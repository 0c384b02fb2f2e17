/**
 * A report on the wire: one encoding, big-endian.
 *
 *     version 2 | task hash 32 | report id 16 | enrolment id 16 | length 4 | body | tag 32
 *
 * The tag is HMAC-SHA256 over all before it and the epoch (4), with the enrolment's key.  The report id follows from the
 * secret, the task and the epoch, so a report that is made anew is the same report.
 */

import { big, type Bytes, imported, joined, sha256, utf8 } from "./bytes.js";
import { derived, type Secret } from "./noise.js";

const VERSION = 2;

export interface Report {
  readonly task: Bytes;
  readonly id: Bytes;
  readonly enrolment: Bytes;
  readonly body: Bytes;
  readonly tag: Bytes;
}

/** Return the report of a body, of an epoch, with the enrolment's key of 32 bytes. */
export async function report(task: Bytes, epoch: number, body: Bytes, secret: Secret, key: Bytes): Promise<Report> {
  const id = (await derived(secret, "report", task, epoch)).slice(0, 16);
  const made = { task, id, enrolment: await enrolmentId(task, key), body };
  const tags = await imported(key, { name: "HMAC", hash: "SHA-256" }, "sign");
  const tag = new Uint8Array(await crypto.subtle.sign("HMAC", tags, joined(untagged(made), big(epoch, 4))));
  return { ...made, tag };
}

/** Return the one encoding of a report. */
export const toBytes = (report: Report): Bytes => joined(untagged(report), report.tag);

/** Return how an enrolment is named: 16 bytes of SHA-256(purpose | task | key). */
export const enrolmentId = async (task: Bytes, key: Bytes): Promise<Bytes> =>
  (await sha256(joined(utf8("graphveil/standard/2/enrolment"), task, key))).slice(0, 16);

const untagged = ({ task, id, enrolment, body }: Omit<Report, "tag">): Bytes =>
  joined([VERSION], task, id, enrolment, big(body.length, 4), body);
