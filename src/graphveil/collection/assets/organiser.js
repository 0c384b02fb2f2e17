/** The organiser's page: log in, see how a collection stands, open, close, export. */

import * as admin from "./admin.js";
import { copied, el, fill, find, goTo, note, table, tell, theirs } from "./dom.js";
import { count } from "./numbers.js";
import { hours, moment, next, numbers, participation, promised, refusals } from "./admin.js";

const EVERY = 5_000;
const SAID = {
  "not-admitted": "This token is not the administrator's.",
  "too-often": "Too many wrong tokens came from this address. Wait ten seconds.",
  offline: "The collector cannot be reached.",
  "disk-full": "The server's disk is full. Reports are refused until there is room.",
  fault: "The collector made a mistake. Its operator should look at the server.",
};
/** What is asked before anything that cannot be taken back. */
const ASKED = {
  open: {
    head: "Open a round?",
    yes: "Open the round",
    said: (told) => [
      `${count(told.enrolled)} people are enrolled and can answer at once.`,
      "Enrolment is over for this round: who enrols from now on joins the next one. The round's nonce is drawn and signed, and cannot be drawn again.",
    ],
  },
  close: {
    head: "Close this round for good?",
    yes: "Close for good",
    said: (told) => [
      `${count(told.received + told.empty)} reports are frozen and hashed. No later report can be added, and nothing opens this round again.`,
      told.received < told.least
        ? `That is fewer than the least number, ${count(told.least)}. Nothing can be exported unless another round brings more people.`
        : "Who has not answered may still do so in another round.",
    ],
  },
  export: {
    head: "Export to a folder on the server?",
    yes: "Export",
    said: (told) => [
      `The reports of ${count(told.answered)} people, with their ids. Whoever has the folder can analyse it for ever: it cannot be called back.`,
      `It becomes the folder ${told.folder}/${folder()}.`,
    ],
  },
  download: {
    head: "Download the export?",
    yes: "Download",
    said: (told) => [
      `The reports of ${count(told.answered)} people, with their ids. Whoever has the file can analyse it for ever: it cannot be called back.`,
      "Keep it where you alone can read it.",
    ],
  },
};

/** Each round's export has a folder of its own. */
const folder = () => (told.epochs.length > 1 ? `collected-${told.epochs.length}` : "collected");

let shown = {};
let told = null;
let later = 0;
/** What was exported here: its folder, and the commands that train on it. */
let exported = null;

/** Show a part anew where what it is made of has changed: whoever reads or has the focus there is left alone. */
function part(id, value, make) {
  const spelled = JSON.stringify(value);
  if (shown[id] === spelled) return;
  shown[id] = spelled;
  find(id).replaceChildren(...[make(value)].flat());
}

const words = (error) => (error instanceof admin.Refused ? error.told.detail ?? SAID[error.code] ?? SAID.fault : SAID.fault);
const say = (text) => { find("status").textContent = text; };

function refuse(error) {
  if (error.code === "not-admitted") {
    leave();
    return tell(find("token"), find("token-wrong"), SAID["not-admitted"]);
  }
  find("refused").replaceChildren(note("bad", words(error)));
}

function leave() {
  admin.logOut();
  told = null;
  exported = null;
  shown = {};
  find("desk").hidden = true;
  find("login").hidden = false;
  find("fresh").textContent = "";
  find("done").replaceChildren();
  find("replaced").replaceChildren();
  find("name").textContent = "The organiser's page";
  find("purpose").textContent = "How a collection stands, and what can be done next.";
}

async function refresh() {
  const found = await admin.status();
  // Logged out meanwhile: what comes now is shown to nobody.
  if (!admin.loggedIn()) return;
  const before = told;
  told = found;
  find("refused").replaceChildren();
  find("login").hidden = true;
  find("desk").hidden = false;
  find("name").replaceChildren(theirs(told.name));
  find("purpose").replaceChildren(theirs(told.purpose));
  find("fresh").textContent = `as of ${moment(told.now)}, looks again by itself`;
  const { now, ...still } = told;
  stands(still);
  if (before !== null && before.received < told.least && told.received >= told.least) say("The least number is reached.");
  if (before === null || before.received !== told.received || before.answered !== told.answered) await estimate();
}

function stands(still) {
  const step = next(told);
  find("next").className = `note ${step.kind}`;
  part("next-head", step.head, (text) => [text]);
  part("next-said", step.said, (text) => [text]);
  offer(step.can);
  part("numbers", [still, Math.floor(told.now / 60)], () => numbers(told));
  part("participation", [told.received, told.people, told.least], () => participation(told));
  part("refusals", told.refused, () => refusals(told));
  part("hours", told.hours, () => hours(told));
  part("promised", still.task + told.epochs, () => promised(told));
  part("train", exported?.train ?? told.train, training);
}

/** Buttons for what can be done now; the one that goes on stands out. */
function offer(can) {
  const shows = { open: can.open && told.key, close: can.close, export: can.export && told.folder !== null, download: can.export };
  const first = can.close ? "close" : can.export ? "export" : "open";
  for (const [id, may] of Object.entries(shows)) {
    // The focus would be lost with a button that goes: it moves to what comes next.
    if (!may && document.activeElement === find(id)) goTo("next");
    find(id).hidden = !may;
    find(id).classList.toggle("main", id === first);
  }
  const command = can.open && !told.key;
  find("open-command").hidden = !command;
  find("open-command").textContent = command ? `# The organiser's key is not on this server. Where it is:\n${told.open_command}` : "";
}

function training(lines) {
  if (!lines.length) return el("p", {}, "No method learns from what this task asks: it needs a label, with features or links beside it or alone.");
  const commands = lines.map((line) => {
    const copy = el("button", { type: "button", class: "small no-print", click: () => copied(copy, line, say) }, "Copy");
    return el("div", { class: "command" }, el("pre", { tabindex: "0" }, line), copy);
  });
  const edges = lines[0].includes("--edges")
    ? "edges.parquet (or .csv) is the public graph: a table with the columns source and target, ids as in the tokens' file."
    : "No edges are needed: the links come from the reports.";
  return el("div", {}, el("p", {}, `On the machine that has the export, in one of these ways. ${edges}`), commands);
}

const percent = (share) => `${Math.round(100 * share)}%`;

async function estimate() {
  const [neighbours, alike] = ["neighbours", "alike"].map((id) => Number(find(id).value));
  const fits = neighbours > 0 && neighbours <= 10_000 && alike >= 0 && alike <= 100;
  tell(find(neighbours > 0 ? "alike" : "neighbours"), find("around-wrong"), fits ? "" : "Neighbours: more than 0. Of 100: from 0 to 100.");
  if (!fits) return;
  const found = await admin.expected(neighbours, alike / 100);
  part("means", [found.means, found.answered], () => means(found));
  find("accuracy").hidden = found.accuracy === null;
  if (found.accuracy !== null) part("accuracy-said", [found.accuracy, found.answered], () => accuracy(found));
}

function accuracy({ accuracy: one, answered }) {
  return [
    el("p", { class: "estimate" }, `about ${percent(one.now)}`),
    el("p", {}, `right with the ${count(answered)} answers at hand; ${percent(one.everybody)} if everybody answered, ${percent(one.chance)} by guessing blindly.`),
    el("p", { class: "soft" }, `An estimate and no measurement: it takes the label that most neighbours reported, and assumes ${one.neighbours} neighbours a person, ${percent(one.alike)} of them with the same label. Methods that use more do better; a graph that is not like that does worse. It is not what graphveil plan says, which tells no accuracy: its figures are of noise, and need the graph, which is not here.`),
  ];
}

function means({ means: lines, answered }) {
  if (!answered) return el("p", {}, "Nobody has answered yet.");
  const rows = lines.map(({ what, error, unit, whole }) => [
    what,
    `± ${error.toLocaleString("en", { maximumSignificantDigits: 2 })} ${unit}${error > whole / 2 ? ": says nothing yet" : ""}`,
  ]);
  const caption = `By how much the noise moves them at most, in 95 of 100 collections of ${count(answered)} answers. That others might have answered otherwise is not in it.`;
  return table(caption, ["average", "#error"], rows);
}

/** Ask before what cannot be taken back; whether the answer was yes. */
function confirmed(kind) {
  const asks = ASKED[kind];
  const box = find("confirm");
  find("confirm-head").textContent = asks.head;
  find("confirm-yes").textContent = asks.yes;
  find("confirm-said").replaceChildren(...asks.said(told).map((line) => el("p", {}, line)));
  box.returnValue = "no";
  box.showModal();
  return new Promise((resolve) => box.addEventListener("close", () => resolve(box.returnValue === "yes"), { once: true }));
}

/** Do something once, and say how it went where the reader is. */
async function act(kind, work, done) {
  if (!(await confirmed(kind))) return;
  find("refused").replaceChildren();
  say("One moment.");
  try {
    const lines = done(await work());
    // Shown once the page has looked again, at one moment: whoever reads that it is done may press what comes next.
    try {
      await refresh();
    } finally {
      fill("done", note("good", ...lines));
    }
    say(lines[0]);
    goTo("next");
  } catch (error) {
    say("");
    refuse(error);
    await refresh().catch(() => {});
    find("refused").replaceChildren(note("bad", words(error)));
  }
}

const hash = (text) => el("p", {}, "Its hash: ", el("code", {}, text));
find("open").addEventListener("click", () => act("open", admin.open, (one) => [`Round ${one.epoch} is open.`]));
find("close").addEventListener("click", () => act("close", admin.close, (one) => [`Round ${one.epoch} is closed.`, hash(one.hash)]));
find("download").addEventListener("click", () => act("download", admin.download, () => ["The export is downloaded.", el("p", {}, "Unpack it, then train on its folder collected.")]));
find("export").addEventListener("click", () => act("export", () => admin.exportTo(folder()), (one) => {
  exported = one;
  return [`The reports of ${count(one.answered)} people are exported.`, el("p", {}, "To ", el("code", {}, one.folder), " on the server.")];
}));
find("logout").addEventListener("click", () => {
  leave();
  find("token").focus();
});
find("around").addEventListener("submit", (event) => {
  event.preventDefault();
  estimate().then(() => say("Estimated again."), refuse);
});
find("login-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const typed = find("token").value.trim();
  tell(find("token"), find("token-wrong"), typed ? "" : "Type the token first.");
  if (!typed) return find("token").focus();
  admin.logIn(typed);
  try {
    await refresh();
    find("token").value = "";
    goTo("main");
  } catch (error) {
    leave();
    tell(find("token"), find("token-wrong"), words(error));
    find("token").focus();
  }
});
find("lost-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const id = find("lost").value;
  tell(find("lost"), find("lost-wrong"), id ? "" : "Type the id first.");
  if (!id) return find("lost").focus();
  find("replaced").replaceChildren();
  try {
    const made = await admin.replaceToken(id);
    find("replaced").replaceChildren(another(made));
  } catch (error) {
    tell(find("lost"), find("lost-wrong"), words(error));
    find("lost").focus();
  }
});

/** A token is told once, with the link that opens the person's page with it. */
function another({ id, token }) {
  const lines = [["Token", token], ["Or as a link", `${new URL("./", location.href)}#${token}.${told.task}`]];
  return note("good", `Another token for ${id}`, el("p", {}, "It is shown this once: hand it on now."),
    lines.map(([name, text]) => el("p", {}, `${name}: `, el("code", {}, text))));
}

/** Look again while somebody looks, and not so often that a large collection is counted all the time. */
async function look() {
  clearTimeout(later);
  const begun = performance.now();
  if (!document.hidden && told !== null && !find("confirm").open) {
    await refresh().catch((error) => {
      refuse(error);
      if (told !== null) find("fresh").textContent = `as of ${moment(told.now)}; trying again`;
    });
  }
  clearTimeout(later);
  later = setTimeout(look, Math.max(EVERY, 10 * (performance.now() - begun)));
}
look();
document.addEventListener("visibilitychange", look);

find("login").hidden = false;
if (admin.loggedIn()) refresh().catch(refuse);
