import { DateTime, Effect } from "effect"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { isUnreadable, type Unreadable } from "../api/schema/Fields.ts"

/** An object, or settings that may not be stored. */
export interface Versioned {
  readonly updated_at: DateTime.Utc | null
}

/**
 * Fails if the caller read another version of the object. `null` is the time of settings that are not stored. A row that
 * this version cannot decode has an unknown time, so that it differs from `null` only. The transaction must hold the lock
 * of the row.
 */
export const requireUnchanged = (
  expected: DateTime.Utc | null | undefined,
  stored: Versioned | Unreadable
): Effect.Effect<void, Refused<"changed_since_read">> =>
  expected === undefined || (isUnreadable(stored) ? expected !== null : isSameTime(expected, stored.updated_at))
    ? Effect.void
    : Effect.fail(
        new ControlError(
          "changed_since_read",
          `Somebody ${changeOf(stored)}, after it was read. Read it again, and decide anew.`,
          { param: "expected_updated_at" }
        )
      )

/** Milliseconds, because the time that a client sends back has no more digits. */
const isSameTime = (expected: DateTime.Utc | null, stored: DateTime.Utc | null): boolean =>
  expected === null || stored === null
    ? expected === stored
    : DateTime.toEpochMillis(expected) === DateTime.toEpochMillis(stored)

const changeOf = (stored: Versioned | Unreadable): string => {
  if (isUnreadable(stored)) return "set this with another version of the program"
  return stored.updated_at === null ? "deleted this" : `changed this at ${DateTime.formatIso(stored.updated_at)}`
}
