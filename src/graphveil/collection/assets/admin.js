/** The collector's administration as the page meets it. The token is in a header, and in this tab's memory. */

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
