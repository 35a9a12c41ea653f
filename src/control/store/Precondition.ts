import { DateTime, Effect } from "effect"
import { ControlError, type Refused } from "../api/schema/Errors.ts"

/** Fails if the caller read another version of the object. The transaction must hold the lock of the row. */
export const requireUnchanged = (
  expected: DateTime.Utc | undefined,
  { updated_at }: { readonly updated_at: DateTime.Utc }
): Effect.Effect<void, Refused<"changed_since_read">> =>
  expected === undefined || DateTime.toEpochMillis(expected) === DateTime.toEpochMillis(updated_at)
    ? Effect.void
    : Effect.fail(
        new ControlError(
          "changed_since_read",
          `Somebody changed this at ${DateTime.formatIso(updated_at)}, after it was read. Read it again, and decide anew.`,
          { param: "expected_updated_at" }
        )
      )
