/** For programs of Node and Deno: a ledger in a folder, and reports read back. */

export { FolderLedger } from "./folder.js";
export { isBy, read } from "./read.js";
