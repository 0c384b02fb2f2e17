/** The collector as the page meets it: six requests, which hold a token, a key or a report, and nothing else. */

import { readIds } from "./people.js";

const QUIET = { credentials: "omit", cache: "no-store", redirect: "error", referrerPolicy: "no-referrer" };

/** The collector refused, with a code of its own, or could not be reached: "offline". */
export class Refused extends Error {
  constructor(code) {
    super(code);
    this.code = code;
  }
}

/** What a path answers, below the page: the collector need not be at the root of its host. */
async function asked(path, told = {}) {
  let answer;
  try {
    answer = await fetch(path, { ...QUIET, ...told });
    if (answer.ok) return new Uint8Array(await answer.arrayBuffer());
  } catch {
    throw new Refused("offline");
  }
  throw new Refused(
    await answer.json().then(
      ({ code }) => String(code),
      () => "fault",
    ),
  );
}

const json = (bytes) => JSON.parse(new TextDecoder().decode(bytes));

/** The signed task. */
export const taskBytes = () => asked("task");

/** The signed opening; refused with "no-opening" while enrolment is open. */
export const openingBytes = () => asked("opening");

/** Whether reports are taken now: {epoch, open, until}; undefined where the collector does not say. */
export async function round() {
  try {
    const told = json(await asked("epoch"));
    return Number.isInteger(told.epoch) && typeof told.open === "boolean" ? told : undefined;
  } catch {
    // What needs an answer asks for one of its own, and tells why there is none.
    return undefined;
  }
}

/** The number that a token ends with. */
export const numberOf = (token) => parseInt(token.slice(-10), 16);

/** Who a token enrols: their number, and the first round they take part in. */
export async function enrol(token, key) {
  const body = JSON.stringify({ token, key });
  const { number, joined } = json(
    await asked("enrolments", { method: "POST", body, headers: { "Content-Type": "application/json" } }),
  );
  if (![number, joined].every((one) => Number.isInteger(one) && one >= 0)) throw new Refused("fault");
  // A token ends with its person's number: else the collector could choose who reports a link, or have both ends do so.
  if (number !== numberOf(token)) throw new Refused("other-person");
  return { number, joined };
}

/** Send a report; return "accepted", or "again" where the collector had it. */
export async function send(bytes) {
  const headers = { "Content-Type": "application/octet-stream" };
  const [code] = json(await asked("reports", { method: "POST", body: bytes, headers })).answers;
  if (code !== "accepted" && code !== "again") throw new Refused(String(code));
  return code;
}

/** The names of everybody in the order of their numbers, as the task knows them. */
export const names = async (task) => readIds(await asked("ids"), task);
