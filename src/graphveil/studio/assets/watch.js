/** A job under way: how far it is, what it has spent, and what became of it, in sentences. */

import * as api from "./api.js";
import { el, more, note } from "./dom.js";
import { acts, button, p, put, short, wrong } from "./parts.js";

export const ENDED = new Set(["done", "refused", "failed", "stopped", "killed"]);
export const STATES = {
  waiting: "waits for its turn", running: "under way", done: "finished",
  refused: "refused", failed: "failed", stopped: "stopped", killed: "ended from outside",
};

const ENDS = {
  refused: ["care", "The command refused this.", "Nothing was spent. Change what the sentence names, and try again."],
  failed: ["bad", "The command failed.", "No result was written. Try again; if it fails again, report the sentence."],
  stopped: ["care", "You stopped it.", "No result was written, and nothing of it was handed out. It can be started again."],
  killed: ["bad", "Something outside ended it.", "No result was written. Usually memory ran out: close other programs, then start it again."],
};

/** Stages of a command, as people say them: the rest is said as it is. */
const inWords = (stage) =>
  stage.replace(/^control (.*)/, "For comparison, without the private data: $1").replace(/^ceiling$/, "For comparison, without any protection")
    .replace(/^rival (.*)/, "For comparison, another method with the same protection: $1");

/** Show a job until it ends; `done(job)` shows what came of it, `state(job)` hears of each change. Returns how to stop looking. */
export function progress(part, id, { done, state = () => {} }) {
  let stop = () => {};
  let gone = false;
  const bar = el("progress", { max: "1", "aria-label": "How far it is" });
  const stage = el("p", { "aria-live": "polite" }, "Starting.");
  const spent = el("p", { class: "soft" });
  const halt = button("Stop", async () => {
    halt.disabled = true;
    await api.drop(`jobs/${id}`).catch((error) => part.append(wrong(error)));
  });
  const moved = ({ stage: name, done: count, total, epsilon }) => {
    if (name) stage.textContent = inWords(name);
    if (total) bar.value = Math.min(1, count / total);
    else bar.removeAttribute("value");
    spent.textContent = epsilon === null || epsilon === undefined ? "" : `Spent so far: epsilon ${short(epsilon)}.`;
  };
  const arrive = async () => {
    const job = await api.get(`jobs/${id}`);
    if (gone) return null;
    state(job);
    if (!ENDED.has(job.state)) {
      if (!bar.isConnected) put(part, el("div", { class: "card" }, stage, bar, spent, acts(halt)));
      if (job.state === "waiting") stage.textContent = "Waiting for its turn: others are running.";
      return job;
    }
    stop();
    if (job.state === "done") done(job);
    else put(part, ended(job, () => again(part, job, { done, state })));
    return job;
  };
  const begin = async () => {
    const job = await arrive();
    if (job === null || gone || ENDED.has(job.state)) return;
    stop = api.follow(id, (kind, value) => (kind === "progress" ? moved(value) : arrive().catch(() => {})));
  };
  begin().catch((error) => put(part, wrong(error), acts(button("Look again", () => progress(part, id, { done, state })))));
  return () => {
    gone = true;
    stop();
  };
}

/** What became of a job that brought no result, and how to start it again. */
export function ended(job, restart) {
  const [kind, headline, advice] = ENDS[job.state];
  const reason = job.error && job.state !== "stopped" ? [p(job.error)] : [];
  const full = /no space left|disk is full|ENOSPC/i.test(job.error ?? "") ? [p("The disk is full: make room in the studio's folder first.")] : [];
  // What spends says so again, on the button that spends.
  const price = job.price ? more("The price, word for word", el("p", { class: "sentence" }, job.price)) : [];
  const words = job.price ? `Start it again: spends ${briefly(job.price)}` : "Start it again";
  return note(kind, headline, reason, full, p(advice), price, acts(button(words, restart, "main")));
}

/** The epsilon within a guarantee's sentence. */
const briefly = (price) => price.match(/epsilon = [^,)]+/)?.[0].replace("= ", "") ?? "run it again";

async function again(part, job, then) {
  try {
    const { id: next } = await api.post(`jobs/${job.id}/again`, { price: job.price ?? null });
    progress(part, next, then);
  } catch (error) {
    part.append(wrong(error));
  }
}
