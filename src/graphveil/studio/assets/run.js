/** Step 4: a button that names the price, then how the run goes and what came of it. */

import * as api from "./api.js";
import { result } from "./card.js";
import { el, more, note, table } from "./dom.js";
import { acts, button, files, fill, p, put, say, wrong } from "./parts.js";
import { exposed, planned, request } from "./trust.js";
import { progress, STATES } from "./watch.js";

export const head = "Run and watch";
export const lead = "The button names what a run spends. A budget that is spent cannot be restored.";
export const needs = ["data", "method"];

export function render(body, app, id) {
  const [price, live, past] = [0, 1, 2].map(() => el("div", {}));
  let stop = () => {};
  const watch = (job) => {
    stop();
    stop = progress(live, job, {
      state: ({ id: number, job: kind, state, out }) => {
        const news = app.choices.job?.state !== state || app.choices.job?.id !== number;
        if (news && ["train", "release"].includes(kind)) app.change({ job: { id: number, state, out } });
      },
      done: (ended) => {
        say("The run is finished.");
        if (ended.out) stop = result(live, app, ended.out);
        else put(live, note("good", "It is finished.", el("pre", { tabindex: "0" }, JSON.stringify(ended.answer, null, 2))));
        history(past, app);
      },
    });
  };
  const started = (job) => {
    app.change({ job: { id: job, state: "waiting" } });
    say("Started.");
    app.go(`run/${job}`);
  };
  const watched = id || app.choices.job?.id;
  body.append(live, price, past);
  if (watched) {
    watch(watched);
    price.append(more("Run it once more, or with other choices", offer(app, started)));
  } else price.append(offer(app, started));
  history(past, app);
  return () => stop();
}

const spends = (app) => (app.spends() ? `spend ${app.spends()}` : "nothing is protected");

function offer(app, started) {
  const part = el("div", {});
  const method = app.method();
  const verb = method.command === "release" ? "Publish" : "Train";
  fill(part, "Asking for the price: nothing is spent yet.", () => planned(app), ({ answer, price, run, config }) => {
    const status = el("div", { role: "status" });
    const press = async () => {
      go.disabled = true;
      try {
        const { id } = await api.post("jobs", { job: method.command, ...request(app), price });
        started(id);
      } catch (error) {
        go.disabled = false;
        put(status, wrong(error, error.code === "other-price" ? "The price has changed: look at it again." : "It was not started."));
      }
    };
    const go = button(`${verb} now: ${spends(app)}`, press, "main price");
    return [
      exposed(answer),
      el("div", { class: "card" }, el("h2", {}, "The price"), el("p", { class: "sentence" }, price ?? answer.guarantee_sentence),
        p("Results are measured on true data: they are for you, not for handing on."),
        acts(go, el("a", { href: "#budget" }, "Change the budget first")), status),
      files(run, config ? [["config.toml", config]] : []),
    ];
  });
  return part;
}

/** All jobs of this studio, the last first. */
async function history(part, app) {
  const { jobs } = await api.get("jobs").catch(() => ({ jobs: [] }));
  if (!jobs.length) return;
  const when = (job) => new Date(1000 * job.created).toLocaleString("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
  const rows = jobs.map((job) => [when(job), job.job, el("code", {}, job.command), STATES[job.state], el("a", { href: `#run/${job.id}` }, "look")]);
  const listed = more(`Everything that ran here (${jobs.length})`, table("Runs, plans and attacks, the last first", ["at", "what", "command", "state", ""], rows));
  put(part, listed);
}
