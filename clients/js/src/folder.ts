/**
 * A ledger in a folder: one file for each entry, linked to its place when it is whole and on disk.
 *
 * Beside them lies a seal, how many entries were booked and their SHA-256: a folder that holds fewer, or others, is
 * refused, since whatever it has forgotten would be told and not be counted.  The seal is written after the entry;
 * whoever finds it behind, after a crash in between, writes it anew.  Copies of all files that are put back together
 * cannot be told from the present ones.
 */

import { createHash } from "node:crypto";
import * as fs from "node:fs";

import { type Booked, DeviceError, type Ledger } from "./device.js";

const NAME = /^\d{9}\.json$/;

interface Seal {
  readonly entries: number;
  readonly sha256: string;
}

export class FolderLedger implements Ledger {
  /** Of a folder, which need not exist. */
  constructor(private readonly folder: string) {}

  async booked(): Promise<Booked[]> {
    fs.mkdirSync(this.folder, { recursive: true });
    for (;;) {
      // What another process has linked must not be lost after this one has sent it.
      synced(this.folder);
      // The seal first: an entry that is booked between the two reads makes the folder longer, and never shorter.
      const seal = this.seal();
      const told = this.entries();
      // Every entry is sealed before the next one is booked.
      const lost = !seal && told.length > 1 && !fs.existsSync(this.sealPath);
      if (lost || (seal && sealOf(told.slice(0, seal.entries)).sha256 !== seal.sha256)) {
        throw this.refusal("is not what was booked: entries or the seal are gone or changed; restore it");
      }
      const booked = told.map((text, place) => this.read(text, place));
      if (told.length === (seal?.entries ?? 0)) return booked;
      // Read again after that: a writer who was slower has not put back an older seal for good.
      this.write(this.sealPath, JSON.stringify(sealOf(told)), fs.renameSync);
    }
  }

  async append(place: number, one: Booked): Promise<boolean> {
    try {
      // Fails where the name is taken, unlike a rename.
      this.write(`${this.folder}/${nameOf(place)}`, JSON.stringify(one), fs.linkSync);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
      throw error;
    }
    // Which seals it.
    await this.booked();
    return true;
  }

  /** Put a text under a name, when it is on disk. */
  private write(path: string, text: string, put: (from: string, to: string) => void): void {
    const part = `${this.folder}/${crypto.randomUUID()}.part`;
    fs.writeFileSync(part, text, { mode: 0o600 });
    try {
      synced(part);
      put(part, path);
    } finally {
      fs.rmSync(part, { force: true });
    }
    synced(this.folder);
  }

  /** The texts of all entries, in order. */
  private entries(): string[] {
    const names = fs.readdirSync(this.folder).filter((name) => NAME.test(name)).sort();
    return names.map((name, place) => {
      if (name !== nameOf(place)) throw this.refusal(`lacks ${nameOf(place)}`);
      return fs.readFileSync(`${this.folder}/${name}`, "utf8");
    });
  }

  private read(text: string, place: number): Booked {
    try {
      return JSON.parse(text) as Booked;
    } catch {
      throw this.refusal(`holds ${nameOf(place)}, which cannot be read`);
    }
  }

  private seal(): Seal | undefined {
    try {
      const { entries, sha256 } = JSON.parse(fs.readFileSync(this.sealPath, "utf8")) as Seal;
      if (Number.isInteger(entries) && typeof sha256 === "string") return { entries, sha256 };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    }
    throw this.refusal("holds a seal that cannot be read");
  }

  private get sealPath(): string {
    return `${this.folder}/ledger.seal`;
  }

  private refusal(said: string): DeviceError {
    return new DeviceError("ledger", `${this.folder} ${said}`);
  }
}

const nameOf = (place: number): string => `${String(place).padStart(9, "0")}.json`;

const sealOf = (entries: readonly string[]): Seal => {
  const hash = createHash("sha256");
  for (const text of entries) hash.update(`${text}\n`);
  return { entries: entries.length, sha256: hash.digest("hex") };
};

/** Wait until a file, or the names in a folder, are on disk. */
function synced(path: string): void {
  const file = fs.openSync(path, "r");
  try {
    fs.fsyncSync(file);
  } finally {
    fs.closeSync(file);
  }
}
