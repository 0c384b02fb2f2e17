/** A ledger in a folder: one file for each entry, linked to its place when it is whole and on disk. */

import * as fs from "node:fs";

import { type Booked, DeviceError, type Ledger } from "./device.js";

const NAME = /^\d{9}\.json$/;

export class FolderLedger implements Ledger {
  /** Of a folder, which need not exist. */
  constructor(private readonly folder: string) {}

  async booked(): Promise<Booked[]> {
    fs.mkdirSync(this.folder, { recursive: true });
    // What another process has linked must not be lost after this one has sent it.
    synced(this.folder);
    const names = fs.readdirSync(this.folder).filter((name) => NAME.test(name)).sort();
    return names.map((name, place) => {
      if (name !== this.name(place)) throw new DeviceError("ledger", `${this.folder} lacks ${this.name(place)}`);
      try {
        return JSON.parse(fs.readFileSync(`${this.folder}/${name}`, "utf8")) as Booked;
      } catch {
        throw new DeviceError("ledger", `${this.folder}/${name} cannot be read`);
      }
    });
  }

  async append(place: number, one: Booked): Promise<boolean> {
    const part = `${this.folder}/${crypto.randomUUID()}.part`;
    fs.writeFileSync(part, JSON.stringify(one), { mode: 0o600 });
    try {
      synced(part);
      // Fails where the name is taken, unlike a rename.
      fs.linkSync(part, `${this.folder}/${this.name(place)}`);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
      throw error;
    } finally {
      fs.unlinkSync(part);
    }
    synced(this.folder);
    return true;
  }

  private name(place: number): string {
    return `${String(place).padStart(9, "0")}.json`;
  }
}

/** Wait until a file, or the names in a folder, are on disk. */
function synced(path: string): void {
  const file = fs.openSync(path, "r");
  try {
    fs.fsyncSync(file);
  } finally {
    fs.closeSync(file);
  }
}
