/**
 * The collector's administration as the page meets it, and how it shows a collection. The token is in a header, and in
 * this tab's memory.
 */

import { el, facts, points } from "./dom.js";
import { count } from "./numbers.js";

const QUIET = { credentials: "omit", cache: "no-store", redirect: "error", referrerPolicy: "no-referrer" };
/** One host may serve several collections, each below a path of its own. */
const KEPT = `graphveil-admin ${location.pathname}`;

/** The administration refused: `code` is the collector's or "offline", `told` the whole answer. */
export class Refused extends Error {
  constructor(code, told = {}) {
    super(code);
    this.code = code;
    this.told = told;
  }
}

export const loggedIn = () => sessionStorage.getItem(KEPT) !== null;
export const logIn = (token) => sessionStorage.setItem(KEPT, token);
export const logOut = () => sessionStorage.removeItem(KEPT);

async function asked(path, body) {
  const headers = { Authorization: `Bearer ${sessionStorage.getItem(KEPT)}` };
  const told = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(`admin/${path}`, { ...QUIET, ...told, headers });
  } catch {
    throw new Refused("offline");
  }
  if (answer.ok) return answer;
  const problem = await answer.json().catch(() => ({ code: "fault" }));
  throw new Refused(String(problem.code), problem);
}

const json = async (path, body) => (await asked(path, body)).json();

export const status = () => json("status");
export const expected = (neighbours, alike) =>
  json(`expected?${new URLSearchParams({ neighbours: String(neighbours), alike: String(alike) })}`);
export const open = () => json("open", {});
export const close = () => json("close", {});
export const exportTo = (folder) => json("export", { folder });
export const replaceToken = (id) => json("tokens", { id });

/** Have the browser save the export as a file. */
export async function download() {
  const address = URL.createObjectURL(await (await asked("export")).blob());
  const link = document.createElement("a");
  link.href = address;
  link.download = "collected.zip";
  link.click();
  // Once the browser has begun to read it.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

const zone = { timeZone: "UTC" };

/** A moment in UTC, which the task's window is told in. */
export const moment = (seconds) =>
  `${new Date(seconds * 1000).toLocaleString("en-GB", { ...zone, dateStyle: "medium", timeStyle: "short" })} UTC`;

/** A time span in its two largest units. */
export function span(seconds) {
  const units = [[86400, "day"], [3600, "hour"], [60, "minute"]];
  const parts = [];
  let left = Math.max(0, seconds);
  for (const [length, name] of units) {
    const whole = Math.floor(left / length);
    if (whole) parts.push(`${count(whole)} ${name}${whole > 1 ? "s" : ""}`);
    left -= whole * length;
  }
  return parts.slice(0, 2).join(" ") || "less than a minute";
}

/** What comes next: a head, a sentence, and which buttons can be used. */
export function next(told) {
  const { now, opens, closes, open, epoch, received, least, enrolled, answered, scrubbed } = told;
  const ready = answered >= least;
  const after = ready
    ? `An export would hold the reports of ${count(answered)} people.`
    : `${count(answered)} people have answered in closed rounds; nothing can be exported from fewer than ${count(least)}.`;
  const can = { open: !open && !scrubbed && enrolled > 0 && now < closes, close: open, export: !scrubbed && ready && epoch > 0 };
  if (scrubbed) return { kind: "", head: "This collection was scrubbed", said: "What people said is in the export that was made before, and not here any more. No further round can be opened: to ask again, sign another task.", can };
  if (open && now >= closes) return { kind: "care", head: `The window is over; round ${epoch} is still open`, said: "Close it: no report is taken any more.", can };
  if (open && now < opens) return { kind: "care", head: `Round ${epoch} is open, and the window is not`, said: `Reports are taken from ${moment(opens)} on.`, can };
  if (open) {
    const more = least - received;
    const said = more > 0
      ? `${count(more)} more needed before anything can be exported. Devices may answer until ${moment(closes)}, or until you close the round.`
      : `The least number is reached. Wait for more, or close the round to export. The window ends ${moment(closes)}.`;
    return { kind: more > 0 ? "" : "good", head: `Round ${epoch} is open`, said, can };
  }
  if (epoch) return { kind: ready ? "good" : "care", head: `Round ${epoch} is closed`, said: after, can };
  if (!enrolled) return { kind: "", head: "Nobody has enrolled yet", said: "Hand out the tokens of tokens.csv, one a person. A round can be opened as soon as somebody has enrolled.", can };
  return { kind: "", head: "Enrolment is open", said: `${count(enrolled)} of ${count(told.people)} people have enrolled. Open the first round when enough have: who enrols later joins the next one.`, can };
}

/** How many reports say nothing, and so count towards nothing. */
const besides = ({ empty }) => (empty ? `; ${count(empty)} more left everything out, and ${empty > 1 ? "do" : "does"} not count` : "");

/** The few numbers that are read first. */
export function numbers(told) {
  const refused = told.refused.reduce((sum, one) => sum + one.count, 0);
  const left = told.closes - told.now;
  const time = told.now < told.opens ? [span(told.opens - told.now), "until the window opens"] : [left > 0 ? span(left) : "over", left > 0 ? "left" : "the window ended"];
  const shown = [
    ["Enrolled", count(told.enrolled), `of ${count(told.people)} people`],
    [told.epoch ? `Reports in round ${told.epoch}` : "Reports", count(told.received), told.epoch ? `of ${count(told.enrolled)} enrolled${besides(told)}` : "no round yet"],
    ["Least number", count(told.least), told.received >= told.least ? "reached" : "not reached in this round"],
    ["Refused", count(refused), refused ? "see below why" : "nothing"],
    ["Time", ...time],
  ];
  return shown.map(([name, value, more]) => el("div", {}, el("dt", {}, name), el("dd", {}, value, el("small", {}, more))));
}

/** How many of all people answered, as a bar with a mark at the least number. */
export function participation(told) {
  const share = told.people ? (100 * told.received) / told.people : 0;
  const said = `${count(told.received)} of ${count(told.people)} people have answered (${share.toFixed(share < 10 ? 1 : 0)}%)`;
  const mark = el("span", { class: "mark", "aria-hidden": "true" });
  mark.style.left = `calc(${(100 * told.least) / told.people}% - 1.5px)`;
  const bar = el("progress", { max: told.people, value: told.received, "aria-label": said });
  const legend = el("p", { class: "legend" }, el("span", {}, said), el("span", {}, `mark: the least number, ${count(told.least)}`));
  return el("div", {}, el("div", { class: "share" }, bar, mark), legend);
}

/** Why reports and enrolments were refused. */
export function refusals(told) {
  if (!told.refused.length) return el("p", {}, "Nothing so far.");
  const lines = told.refused.map((one) =>
    el("li", {}, el("p", {}, el("strong", {}, count(one.count)), ` ${one.says} `, el("code", {}, one.code)), el("p", { class: "soft" }, `${one.means} ${one.to_do}`.trim())));
  return el("div", {}, el("p", { class: "soft" }, "Reports and enrolments, counted over all rounds. None of them was stored; one that was sent again and taken is counted here too. What cannot be read as a report counts once a request."), el("ul", { class: "plain" }, lines));
}

/** How many reports came in each hour. */
export function hours(told) {
  if (!told.hours.length) return el("p", {}, "None yet. Nothing finer than the hour is stored.");
  const most = Math.max(...told.hours.map((one) => one.reports));
  const rows = told.hours.slice(-48).map(({ hour, reports }) =>
    el("li", { class: "hour" }, el("span", {}, moment(hour)), el("progress", { max: most, value: reports, "aria-hidden": "true" }), el("span", {}, count(reports))));
  const left = told.hours.length - rows.length;
  return el("div", {}, el("p", { class: "soft" }, `Of round ${told.epoch}, by the hour; nothing finer is stored.${left > 0 ? ` The first ${left} hours are left out here.` : ""}`), el("ul", { class: "plain" }, rows));
}

/** What the task says, which cannot change any more. */
export function promised(told) {
  return el("div", {},
    told.guarantee.map((line) => el("p", { class: "sentence" }, line)),
    facts([
      ["Organiser", `${told.organiser}, ${told.contact}`],
      ["Window", `${moment(told.opens)} to ${moment(told.closes)}`],
      ["Asked", told.asked.map(({ kind, epsilon }) => `${kind} at epsilon ${epsilon}`).join(", ")],
      ["Signed by", el("code", {}, told.signed_by)],
      ["Hash of the task", el("code", {}, told.task)],
      ...told.epochs.map((hash, place) => [`Hash of round ${place + 1}`, el("code", {}, hash)]),
    ]),
    told.public.length ? [el("h3", {}, "Public anyway"), points(told.public)] : []);
}
