/** A ledger and a device's secrets in a browser: IndexedDB of one site, shared by its tabs. */

import { imported } from "./bytes.js";
import type { Booked, Ledger } from "./ledger.js";
import type { Enrolled } from "./reporting.js";

/** Of the one store: reports under whole numbers, and who the device is to a task under the task's hash. */
const KEPT = "kept";

/** Return a secret that this site can use and nobody can read, and ask the browser to keep what the site keeps. */
export const newSecret = (): Promise<CryptoKey> => {
  // Nobody waits for it: Firefox asks the person, who may answer never.
  navigator.storage?.persist?.().catch(() => {});
  return imported(crypto.getRandomValues(new Uint8Array(32)), "HKDF", "deriveBits");
};

export class BrowserLedger implements Ledger {
  private constructor(private readonly store: IDBDatabase) {}

  /** Open the ledger of a name, which need not exist. */
  static async open(name = "graphveil"): Promise<BrowserLedger> {
    const asked = indexedDB.open(name);
    asked.onupgradeneeded = () => asked.result.createObjectStore(KEPT);
    return new BrowserLedger(await done(asked));
  }

  booked(): Promise<Booked[]> {
    return done(this.store.transaction(KEPT).objectStore(KEPT).getAll(IDBKeyRange.bound(0, Infinity)));
  }

  /** Return who this device is to a task, known by its hash in hexadecimal, if it is enrolled. */
  enrolled(task: string): Promise<Enrolled | undefined> {
    return done(this.store.transaction(KEPT).objectStore(KEPT).get(task));
  }

  /** Keep a report under its place, or who this device is under a task's hash; return false where one is kept there. */
  append(key: number | string, value: Booked | Enrolled): Promise<boolean> {
    // "strict": complete means on disk, not on its way there.
    const work = this.store.transaction(KEPT, "readwrite", { durability: "strict" });
    work.objectStore(KEPT).add(value, key);
    return new Promise((resolve, reject) => {
      work.oncomplete = () => resolve(true);
      work.onabort = () => (work.error?.name === "ConstraintError" ? resolve(false) : reject(work.error));
    });
  }
}

const done = <T>(asked: IDBRequest<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(asked.error);
  });
