/** The studio's server: one session, one way to ask, and every refusal a sentence. */

const OFFLINE = "The studio does not answer: the note at the top says what to do.";
const FAULT = "The studio failed. It spent nothing; the terminal says more.";

/** What the server refused, or that it does not answer. */
export class Refused extends Error {
  constructor(code, status, sentence) {
    super(sentence);
    this.code = code;
    this.status = status;
  }
}

let csrf = "";
const listeners = { connection: () => {}, closed: () => {} };

/** Call `connection(true or false)` when the server answers or stops to, `closed()` when this browser is not admitted. */
export const listen = (wanted) => Object.assign(listeners, wanted);

async function refusal(response) {
  const answer = await response.json().catch(() => ({}));
  if (response.status === 401) listeners.closed();
  const sentence = typeof answer.error === "string" ? answer.error : FAULT;
  return new Refused(answer.code ?? "fault", response.status, sentence);
}

async function send(method, path, body, headers = {}) {
  let response;
  try {
    response = await fetch(path, { method, body, headers: { ...headers, ...(method === "GET" ? {} : { "X-CSRF-Token": csrf }) } });
  } catch {
    listeners.connection(false);
    throw new Refused("offline", 0, OFFLINE);
  }
  listeners.connection(true);
  if (!response.ok) throw await refusal(response);
  return response.status === 204 ? null : response.json();
}

export const get = (path) => send("GET", `api/${path}`);
export const drop = (path) => send("DELETE", `api/${path}`);
export const upload = (path, file) => send("PUT", `api/${path}`, file);
const json = (method) => (path, value) => send(method, `api/${path}`, JSON.stringify(value), { "Content-Type": "application/json" });
export const post = json("POST");
export const put = json("PUT");

/** The path of a folder within an address: its slashes stay. */
export const spelled = (path) => path.split("/").map(encodeURIComponent).join("/");

/** Exchange the token of the address for a cookie, once; with a cookie, go on. */
export async function enter() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token) history.replaceState(null, "", "#data");
  try {
    csrf = (token ? await post("session", { token }) : await get("session")).csrf;
  } catch (error) {
    // The link of this browser may have been used already: then its cookie is there.
    if (!token || error.status !== 401) throw error;
    csrf = (await get("session")).csrf;
  }
}

/** Follow a job until it ends; the browser itself asks again where the line breaks. Returns how to stop looking. */
export function follow(id, seen) {
  const source = new EventSource(`api/jobs/${id}/events`);
  const read = (event) => seen(event.type, JSON.parse(event.data));
  source.addEventListener("progress", read);
  source.addEventListener("state", read);
  source.onopen = () => listeners.connection(true);
  // The end of a stream is an error to a browser too: only the server can say whether it is there.
  source.onerror = () => get("session").catch(() => {});
  return () => source.close();
}
