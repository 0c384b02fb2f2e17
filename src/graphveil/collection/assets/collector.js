/** The collector as the page meets it: six requests, which hold a token, a key or a report, and nothing else. */

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

/** The names of everybody in the order of their numbers, held to the hash that the task names. */
export async function names({ facts, people }) {
  const lines = new TextDecoder()
    .decode(await asked("ids"))
    .split("\n")
    .filter(Boolean);
  const found = lines.map(spoken);
  // Else the collector could pass one person off as another, or have somebody stand on both sides of the same person:
  // without the length by a list that holds everybody twice, and as many names of nobody.
  const each = found.length === people && new Set(found).size === people;
  if (!each || (await hashOf(found)) !== facts.ids) throw new Refused("bad-ids");
  return found;
}

/** The name of a line. */
function spoken(line) {
  try {
    const name = JSON.parse(line);
    // Half a character would be hashed as U+FFFD, and two people could share that hash.
    if (typeof name === "string" && name.isWellFormed()) return name;
  } catch {
    // Below: it is as wrong as no text.
  }
  throw new Refused("bad-ids");
}

/** SHA-256 of all names, each behind its length in 4 bytes. */
async function hashOf(list) {
  const spelled = list.map((one) => new TextEncoder().encode(one));
  const bytes = new Uint8Array(spelled.reduce((sum, one) => sum + 4 + one.length, 0));
  const view = new DataView(bytes.buffer);
  let at = 0;
  for (const one of spelled) {
    view.setUint32(at, one.length);
    bytes.set(one, at + 4);
    at += 4 + one.length;
  }
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
