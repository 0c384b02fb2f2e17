/** Reports read back from the wire, as a collector does. */

import { type Bytes, DeviceError, type Report, toBytes } from "./device.js";

const VERSION = 2;
const HEAD = 1 + 32 + 16 + 16 + 4;
const TAG = 32;

/** Return the report that begins at a place, and where the next one would; refuses `truncated` or `bad-version`. */
export function read(data: Bytes, at = 0): [Report, next: number] {
  const left = data.length - at;
  if (left < HEAD + TAG) throw new DeviceError("truncated", left);
  if (data[at] !== VERSION) throw new DeviceError("bad-version", data[at]);
  const end = HEAD + new DataView(data.buffer, data.byteOffset + at).getUint32(HEAD - 4);
  if (left < end + TAG) throw new DeviceError("truncated", left);
  const part = (from: number, to: number) => data.slice(at + from, at + to);
  const [task, id, enrolment] = [part(1, 33), part(33, 49), part(49, 65)];
  return [{ task, id, enrolment, body: part(HEAD, end), tag: part(end, end + TAG) }, at + end + TAG];
}

/** Return whether the tag was made with an enrolment's key, for an epoch. */
export async function isBy(report: Report, key: Bytes, epoch: number): Promise<boolean> {
  const tags = await crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
  // The four bytes of the epoch in place of the tag, of which the first four are left.
  const told = toBytes(report).subarray(0, 4 - TAG);
  new DataView(told.buffer).setUint32(told.length - 4, epoch);
  return crypto.subtle.verify("HMAC", tags, report.tag, told);
}
