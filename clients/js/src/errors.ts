/** Why a device refuses: one code for each reason, the same in every language. */

/** A refusal: `code` is of the standard's table, `said` is what was found. */
export class DeviceError extends Error {
  constructor(
    readonly code: string,
    readonly said: unknown = "",
  ) {
    super(`${code}: ${said}`);
  }
}

/** Refuse. */
export function refuse(code: string, said?: unknown): never {
  throw new DeviceError(code, said);
}

/** Refuse unless something holds. */
export function require(holds: unknown, code: string, said?: unknown): asserts holds {
  if (!holds) refuse(code, said);
}
