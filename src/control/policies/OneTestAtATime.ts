import { Effect } from "effect"
import { ControlError } from "../api/schema/Errors.ts"

const busy = new ControlError(
  "guardrail_test_busy",
  "Another guardrail test of this caller is running, or too many tests of others are running. Send one test at a time."
)

const maxConcurrentTests = 4

/**
 * Runs one test per caller (a key, or an operator token) at a time, then waits for as long as the test took. Redacting a long text occupies the CPU of
 * the whole process. Limits of the key's policy do not apply to tests.
 */
export const oneTestAtATime = () => {
  const running = new Set<string>()
  return (caller: string) =>
    <A, E, R>(test: Effect.Effect<A, E, R>) =>
      Effect.suspend((): Effect.Effect<A, E | typeof busy, R> => {
        if (running.has(caller) || running.size >= maxConcurrentTests) return Effect.fail(busy)
        running.add(caller)
        return Effect.timed(test).pipe(
          Effect.tap(([duration]) => Effect.sleep(duration)),
          Effect.map(([, result]) => result),
          Effect.ensuring(Effect.sync(() => running.delete(caller)))
        )
      })
}
