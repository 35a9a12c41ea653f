import { inspect } from "node:util"
import { type Duration, Effect, Schedule } from "effect"

/** Repeats `ask` until its result satisfies `holds`, and returns this result. Dies with the last result after `within`. */
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
        orElse: () =>
          Effect.die(new Error(`The expected result did not arrive. The last one: ${inspect(last, { depth: 10 })}`))
      }),
      Effect.orDie
    )
  })
