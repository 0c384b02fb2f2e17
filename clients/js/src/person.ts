/** Where one person stands in a task: all of it is public. */

import type { Bytes } from "./bytes.js";

/** `task` is its hash, `people` how many there are, `number` the person's, `nonce` that of the opening they joined at. */
export interface Person {
  readonly task: Bytes;
  readonly people: number;
  readonly number: number;
  readonly nonce: Bytes;
}
