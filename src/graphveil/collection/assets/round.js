/**
 * A round:  wait for it -> own answers -> the exact report -> booked -> sent.
 *
 * Whether it is open is the collector's word: it decides what is shown, and nothing that protects anybody.
 */

import { answers as formOf, readFile } from "./answers.js";
import * as collector from "./collector.js";
import * as device from "./device.js";
import { el, fill, find, goTo, more, note } from "./dom.js";
import { moment } from "./numbers.js";
import { readings, report, sent } from "./outcome.js";
import { codeOf, WORDS } from "./refusals.js";
import { terms } from "./terms.js";
import { answersAs, doing, now, refuse, showAccounts, step } from "./visit.js";

/** Take part: wait for the round, answer it, or send again what was booked. */
export async function answering() {
  await showAccounts();
  find("join").hidden = true;
  fill("terms", more("What is asked, and what can be learned about you", terms(now.task, now.hash)));
  const seconds = Date.now() / 1000;
  const { opens, closes } = now.task.facts;
  // Before anything is booked: a report that comes too early or too late is paid for and does not count.
  if (seconds >= Number(closes)) return wait("The collection has ended", "Nothing can be sent any more.");
  if (seconds < Number(opens))
    return wait("You take part", `Answers are taken from ${moment(opens)} on. Come back then, in this browser.`);
  now.round = await collector.round();
  try {
    now.opening = await device.readOpening(await collector.openingBytes(), now.task);
  } catch (error) {
    if (error.code !== "no-opening") throw error;
    return wait(
      "You take part. Enrolment is still open",
      "Answers are taken when everybody who wants to has joined. Come back " +
        "to this page, in this browser; you need no link any more. Nothing of yours was sent.",
    );
  }
  if (now.who.joined > now.opening.epoch) {
    return wait(
      "You take part from the next round on",
      "The round that runs began before you joined. Come back later, in this browser.",
    );
  }
  const booked = (await now.home.reports()).find((one) => one.task === now.hash && one.epoch === now.opening.epoch);
  if (booked) return booked.at ? done() : failed(await bytesOf(booked), { code: "unconfirmed" });
  if (now.round?.open === false) {
    return wait(
      `Round ${now.opening.epoch} is closed`,
      "No answers are taken now, and you sent none in this round. Should another one open, you can answer in it: " +
        "come back later, in this browser.",
    );
  }
  await form();
}

/** Whether the round that the page shows takes no reports any more, or another one has opened. */
const over = (told) => told !== undefined && !(told.open && told.epoch === now.opening?.epoch);

/** Look at the round again when the person comes back to the page; what they typed stays. */
export async function lookAgain() {
  if (!now.who || !now.step) return;
  const [before, told] = [now.round, await collector.round()];
  if (told === undefined || (told.epoch === before?.epoch && told.open === before?.open)) return;
  now.round = told;
  showUntil();
  if (now.waiting) return doing("Looking", answering);
  if (now.step !== "answer" && now.step !== "check") return;
  if (!told.open) return refuse({ code: "round-over" });
  await doing("Looking", async () => {
    now.opening = await device.readOpening(await collector.openingBytes(), now.task);
    await now.again?.();
  });
}

function wait(head, words) {
  step("answer");
  const again = el("button", { type: "button", click: () => doing("Looking", answering) }, "Look again");
  fill(
    "now",
    el("h2", { id: "now-head" }, head),
    note("good", "Nothing to do now.", el("p", {}, words)),
    el("div", { class: "acts" }, again),
  );
  now.waiting = true;
  goTo("now");
}

/** Until when answers are taken, above the form. */
const until = el("p", { class: "soft" });
function showUntil() {
  const { epoch, open, until: last } = now.round ?? {};
  until.textContent = open ? `Round ${epoch} is open, until ${moment(last)} at the latest.` : "";
  until.hidden = !open;
}

/** The form of the person's own answers. */
async function form() {
  step("answer");
  showUntil();
  const asked = formOf(now.task, now.who.number, now.names);
  const file = el("input", { type: "file", id: "file", accept: ".json,.csv,.txt", "aria-describedby": "file-hint" });
  file.addEventListener("change", () =>
    doing("Reading the file", async () => asked.load(await readFile(file.files[0], now.task))),
  );
  const check = (event) => {
    event.preventDefault();
    doing("Making your report", () => preview(asked.read()));
  };
  fill(
    "now",
    el("h2", { id: "now-head" }, "Your answers"),
    el(
      "p",
      {},
      "What you write here stays in this browser. The next step shows the report; nothing is sent before you say so.",
    ),
    answersAs(now.who.number),
    until,
    el(
      "form",
      { novalidate: true, submit: check },
      asked.parts,
      el(
        "details",
        {},
        el("summary", {}, "Take my answers from a file"),
        el("label", { for: "file" }, "File of yours"),
        file,
        el(
          "p",
          { class: "hint", id: "file-hint" },
          'JSON such as {"label": "…", "features": [1, 2], "links": ["a name"]}, or a table of your numbers ' +
            "(csv). It is read here and sent nowhere.",
        ),
      ),
      el("div", { class: "acts" }, el("button", { class: "main", id: "preview" }, "Show me the report")),
    ),
  );
  now.form = [...find("now").children];
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
    parts,
    bytes: await bytesOf(would),
    nano: BigInt(would.nano),
    spent: await now.home.spent(),
    limit: now.home.limit,
    twice: await now.home.answeredOther(device.hex(now.task.key), now.hash),
    changed: earlier !== undefined && earlier.body !== would.body,
    send: () => doing("Booking and sending", () => book(values, would.body)),
    back,
  });
  fill("now", shown);
  goTo("now");
}

function back() {
  step("answer");
  fill("now", now.form);
  goTo("now");
}

/** On disk first, then off: whatever fails in between, the same bytes are sent again. */
async function book(values, shown) {
  // Before it is paid for: a report that comes too late does not count.
  if (over(await collector.round())) return refuse({ code: "round-over" });
  const booked = await device.book(now.task, now.opening, now.who, values, now.home.ledger, now.home.limit);
  await showAccounts();
  await deliver(device.toBytes(booked));
  if (device.hex(booked.body) !== shown) refuse({ code: "other-tab" });
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
  fill(
    "now",
    sent.failed(head, words, codeOf(error), bytes, () => doing("Sending again", () => deliver(bytes))),
  );
  goTo("now");
}

function done() {
  step("send");
  fill("now", sent.arrived(now.opening.epoch));
  now.waiting = true;
  goTo("now");
}
