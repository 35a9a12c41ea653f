import { type Duration, Effect, Schedule } from "effect"

/** Asks again until `holds` says yes to the answer, which it then is; what was answered last is in the failure. */
export const eventually = <A, E, R>(
  ask: Effect.Effect<A, E, R>,
  holds: (answer: A) => boolean,
  within: Duration.Input = "40 seconds"
): Effect.Effect<A, never, R> =>
  Effect.suspend(() => {
    let last: unknown = "no answer"
    return ask.pipe(
      Effect.filterOrFail(
        (answer) => holds(answer),
        (answer) => answer
      ),
      Effect.tapError((unlike) =>
        Effect.sync(() => {
          last = unlike
        })
      ),
      Effect.retry(Schedule.spaced("15 millis")),
      Effect.timeoutOrElse({
        duration: within,
        orElse: () => Effect.die(new Error(`it did not come to be so: ${JSON.stringify(last, null, 2)}`))
      }),
      Effect.orDie
    )
  })
