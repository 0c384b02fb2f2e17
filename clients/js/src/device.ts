/** The device of a collection: checks a task, answers it under permanent noise, books the price and makes the report. */

export { type Answer, answer, answers, cost, type Names, type Values } from "./answer.js";
export { assigned } from "./assigned.js";
export { BrowserLedger, newSecret } from "./browser.js";
export { type Bytes, hex, unhex } from "./bytes.js";
export { canonical, parse } from "./canonical.js";
export { DeviceError } from "./errors.js";
export { keeps } from "./exact.js";
export type { Field } from "./field.js";
export { type Booked, type Ledger, spent } from "./ledger.js";
export type { Person } from "./person.js";
export { book, type Enrolled, preview } from "./reporting.js";
export { nonceOf, type Opening, personOf, readOpening, readTask, requireInside, type Task } from "./task.js";
export { enrolmentId, type Report, report, toBytes } from "./wire.js";
