/**
 * The person's page:  link -> what is asked -> take part -> own answers -> the exact report -> booked -> sent.
 *
 * The device of `device.js` checks, draws and books; this file only leads from one step to the next.
 */

import { answers as formOf, Unanswered } from "./answers.js";
import * as collector from "./collector.js";
import * as device from "./device.js";
import { el, fill, find, goTo, more, note, tell } from "./dom.js";
import { Home } from "./home.js";
import { readFile } from "./file.js";
import { decimal } from "./numbers.js";
import { accounts } from "./accounts.js";
import { report, sent } from "./outcome.js";
import { readings } from "./reading.js";
import { codeOf, WORDS } from "./refusals.js";
import { terms } from "./terms.js";

const STEPS = { read: 0, answer: 1, check: 2, send: 3 };
/**
 * Of this visit: what is kept, the task that was checked, its hash, who the person is, the opening, names of people, and
 * what shows the report anew when the limit has changed.
 */
const now = { home: undefined, task: undefined, hash: "", who: undefined, opening: undefined, names: [], again: undefined };

/** Do something; a refusal is told in words at the head of the page. */
async function doing(what, work) {
  fill("refused");
  find("status").textContent = what;
  try {
    await work();
    find("status").textContent = "";
  } catch (error) {
    if (!(error instanceof Unanswered)) refuse(error);
    find("status").textContent = error instanceof Unanswered ? "Some answers are missing or wrong." : "";
  }
}

function refuse(error) {
  const code = codeOf(error);
  const [head, words] = WORDS[code];
  fill("refused", note("bad", head, el("p", {}, words), el("p", { class: "soft" }, "Code: ", el("code", {}, code))));
  find("refused").scrollIntoView({ block: "start" });
}

function step(name) {
  now.again = undefined;
  find("steps").hidden = false;
  [...find("steps").children].forEach((one, place) =>
    place === STEPS[name] ? one.setAttribute("aria-current", "step") : one.removeAttribute("aria-current"));
}

/** The two parts of the link, which stand nowhere afterwards. */
function link() {
  const told = location.hash;
  if (!told.includes(".")) return undefined;
  history.replaceState(null, "", location.pathname);
  const [, token, hash] = /^#([\da-f]+)\.([\da-f]{64})$/i.exec(told) ?? [];
  if (!token) refuse({ code: "bad-link" });
  return token && { token, hash: hash.toLowerCase() };
}

async function start() {
  if (!globalThis.isSecureContext || !crypto.subtle) throw { code: "no-crypto" };
  now.home = await Home.open();
  await showAccounts();
  const invited = link();
  const data = await collector.taskBytes();
  if (invited) return ask(data, invited);
  const task = await device.readTask(data);
  now.who = await now.home.enrolled(device.hex(task.hash));
  if (now.who) return ask(data, { hash: device.hex(task.hash) });
  find("begin").hidden = false;
  find("begin-form").addEventListener("submit", (event) => {
    event.preventDefault();
    begin(data);
  });
}

/** Go on from the two parts as they were typed. */
function begin(data) {
  const typed = (id, right, said) => {
    const told = find(id).value.trim().toLowerCase();
    tell(find(id), find(`${id}-wrong`), right.test(told) ? "" : said);
    return told;
  };
  const hash = typed("hash", /^[\da-f]{64}$/, "This is no hash: it has 64 characters.");
  const token = typed("token", /^([\da-f]{2}){16,}$/, "This is no token: it has 32 characters or more, 0 to 9 and a to f.");
  const wrong = document.querySelector("#begin [aria-invalid]");
  if (wrong) wrong.focus();
  else doing("Checking the questions", () => ask(data, { token, hash }));
}

/** Check the task and show what is asked; go on at once where this browser takes part already. */
async function ask(data, { token, hash }) {
  now.task = await device.readTask(data, device.unhex(hash));
  now.hash = hash;
  const { facts } = now.task;
  document.title = `${facts.name} - graphveil`;
  find("name").textContent = facts.name;
  fill("terms", terms(now.task, hash));
  find("begin").hidden = true;
  find("asked").hidden = false;
  now.who = await now.home.enrolled(hash);
  if (now.who) return answering();
  step("read");
  const limit = now.home.limit;
  find("join").hidden = false;
  find("join-limit").value = limit === undefined ? "" : decimal(limit);
  const price = now.task.fields.reduce((sum, { epsilon }) => sum + epsilon, 0n);
  find("join-limit-hint").textContent =
    `A report that answers everything costs ${decimal(price)}; the same answers again cost nothing. Empty: no limit.`;
  find("join").onsubmit = (event) => {
    event.preventDefault();
    if (takeLimit("join-limit")) doing("Joining", () => join(token));
  };
}

function takeLimit(id) {
  const right = now.home.limitTo(find(id).value.replace(",", "."));
  tell(find(id), find(`${id}-wrong`), right ? "" : "Write a number as 5 or 2.5, or nothing.");
  if (!right) find(id).focus();
  return right;
}

async function join(token) {
  const begun = await now.home.begun(now.hash, now.task.facts.name);
  const told = await collector.enrol(token, device.hex(begun.key));
  device.personOf(now.task, told.number, new Uint8Array(16));
  now.who = await now.home.confirm(now.hash, begun, told);
  await answering();
}

/** Take part: wait for the round, answer it, or send again what was booked. */
async function answering() {
  await showAccounts();
  find("join").hidden = true;
  fill("terms", more("What is asked, and what can be learned about you", terms(now.task, now.hash)));
  const seconds = Date.now() / 1000;
  if (seconds >= Number(now.task.facts.closes)) return wait("The collection has ended", "Nothing can be sent any more.");
  try {
    now.opening = await device.readOpening(await collector.openingBytes(), now.task);
  } catch (error) {
    if (error.code !== "no-opening") throw error;
    return wait("You take part. Enrolment is still open", "Answers are taken when everybody who wants to has joined. Come back " +
      "to this page, in this browser; you need no link any more. Nothing of yours was sent.");
  }
  if (now.who.joined > now.opening.epoch) {
    return wait("You take part from the next round on", "The round that runs began before you joined. Come back later, in this browser.");
  }
  const booked = (await now.home.reports()).find((one) => one.task === now.hash && one.epoch === now.opening.epoch);
  if (booked) return booked.at ? done() : failed(await bytesOf(booked), { code: "unconfirmed" });
  await form();
}

function wait(head, words) {
  step("answer");
  const again = el("button", { type: "button", click: () => doing("Looking", answering) }, "Look again");
  fill("now", el("h2", { id: "now-head" }, head), note("good", "Nothing to do now.", el("p", {}, words)), el("div", { class: "acts" }, again));
  goTo("now");
}

/** The form of the person's own answers. */
async function form() {
  step("answer");
  if (now.task.fields.some(({ kind }) => kind === "links" || kind === "degree")) now.names = await collector.names(now.task.facts.ids);
  const asked = formOf(now.task, now.who.number, now.names);
  const file = el("input", { type: "file", id: "file", accept: ".json,.csv,.txt", "aria-describedby": "file-hint" });
  file.addEventListener("change", () => doing("Reading the file", async () => asked.load(await readFile(file.files[0], now.task))));
  const check = (event) => {
    event.preventDefault();
    doing("Making your report", () => preview(asked.read()));
  };
  fill("now",
    el("h2", { id: "now-head" }, "Your answers"),
    el("p", {}, "What you write here stays in this browser. The next step shows the report; nothing is sent before you say so."),
    el("form", { novalidate: true, submit: check }, asked.parts,
      el("details", {}, el("summary", {}, "Take my answers from a file"),
        el("label", { for: "file" }, "File of yours"), file,
        el("p", { class: "hint", id: "file-hint" }, "JSON such as {\"label\": \"…\", \"features\": [1, 2], \"links\": [\"a name\"]}, or a table of your numbers (csv). It is read here and sent nowhere.")),
      el("div", { class: "acts" }, el("button", { class: "main", id: "preview" }, "Show me the report"))));
  goTo("now");
}

const person = () => device.personOf(now.task, now.who.number, device.nonceOf(now.opening, now.who.joined));
const bytesOf = async ({ epoch, body }) =>
  device.toBytes(await device.report(now.task.hash, epoch, device.unhex(body), now.who.secret, now.who.key));

/** Show the report that would leave, bit by bit what it says and how it reads. */
async function preview(values) {
  const before = await now.home.reports();
  const would = await device.preview(now.task, now.opening, now.who, values, before);
  const bits = device.answers(now.task, person(), device.unhex(would.body));
  const parts = await readings(now.task, person(), values, bits, now.names);
  const earlier = before.filter((one) => one.task === now.hash).at(-1);
  step("check");
  now.again = () => preview(values);
  const shown = report({
    parts, bytes: await bytesOf(would), nano: BigInt(would.nano), spent: await now.home.spent(), limit: now.home.limit,
    changed: earlier !== undefined && earlier.body !== would.body,
    send: () => doing("Booking and sending", () => book(values)), back: () => doing("", back),
  });
  const form = [...find("now").children];
  const back = async () => {
    step("answer");
    fill("now", form);
    goTo("now");
  };
  fill("now", shown);
  goTo("now");
}

/** On disk first, then off: whatever fails in between, the same bytes are sent again. */
async function book(values) {
  const booked = await device.book(now.task, now.opening, now.who, values, now.home.ledger, now.home.limit);
  await showAccounts();
  await deliver(device.toBytes(booked));
}

async function deliver(bytes) {
  try {
    await collector.send(bytes);
  } catch (error) {
    return failed(bytes, error);
  }
  await now.home.arrived(now.hash, now.opening.epoch);
  await showAccounts();
  done();
}

function failed(bytes, error) {
  step("send");
  const [head, words] = WORDS[codeOf(error)];
  fill("now", sent.failed(head, words, codeOf(error), bytes, () => doing("Sending again", () => deliver(bytes))));
  goTo("now");
}

function done() {
  step("send");
  fill("now", sent.arrived(now.opening.epoch));
  goTo("now");
}

/** What was sent, spent and is left, of all collections of this site. */
async function showAccounts() {
  const change = (event) => {
    event.preventDefault();
    if (takeLimit("limit")) doing("", () => Promise.all([showAccounts(), now.again?.()]));
  };
  const reports = await now.home.reports();
  if (now.who || reports.length) fill("spent", accounts(reports, await now.home.spent(), now.home.limit, change));
}

// A link that is pasted where the page is open changes the fragment alone.
addEventListener("hashchange", () => location.hash.includes(".") && location.reload());
doing("Loading", start);
