import { DateTime, Effect } from "effect"
import { ControlError, type Refused } from "../api/schema/Errors.ts"

/**
 * Fails if the caller read another version of the object. `null` is the time of settings that are not stored. The
 * transaction must hold the lock of the row.
 */
export const requireUnchanged = (
  expected: DateTime.Utc | null | undefined,
  { updated_at }: { readonly updated_at: DateTime.Utc | null }
): Effect.Effect<void, Refused<"changed_since_read">> =>
  expected === undefined || isSameTime(expected, updated_at)
    ? Effect.void
    : Effect.fail(
        new ControlError(
          "changed_since_read",
          `Somebody ${changeOf(updated_at)}, after it was read. Read it again, and decide anew.`,
          { param: "expected_updated_at" }
        )
      )

/** Milliseconds, because the time that a client sends back has no more digits. */
const isSameTime = (expected: DateTime.Utc | null, stored: DateTime.Utc | null): boolean =>
  expected === null || stored === null
    ? expected === stored
    : DateTime.toEpochMillis(expected) === DateTime.toEpochMillis(stored)

const changeOf = (stored: DateTime.Utc | null): string =>
  stored === null ? "deleted this" : `changed this at ${DateTime.formatIso(stored)}`
