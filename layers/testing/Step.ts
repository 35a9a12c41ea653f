import { Context, Data, Effect } from "effect"
import type { WorkerProcess } from "./WorkerProcess.ts"

/** The worker that runs the current fiber. There is none outside a `HandlerCheck`. */
export const CurrentWorker = Context.Reference<WorkerProcess | undefined>("svc/testing/CurrentWorker", {
  defaultValue: () => undefined
})

/** The defect of a step that fails because of a fault. */
export class StepFailed extends Data.TaggedError("StepFailed")<{ readonly message: string }> {}

export interface StepOptions<E> {
  /** Makes the error of a step that fails because of a fault. Default: the step dies with a `StepFailed`. */
  readonly error?: (() => E) | undefined
}

/**
 * Makes an effect a point at which a `HandlerCheck` crashes, interrupts, delays or fails the worker. Wrap what your
 * services do to the outside world, such as a call of an API or a write to a database. The name appears in schedules,
 * so it should name the subject too. The effect of a step counts as one moment: a crash is before or after it.
 *
 * Outside a `HandlerCheck`, a step is the effect itself.
 *
 * ```ts
 * const charge = (order: string) =>
 *   step(`charge ${order}`, cards.charge(order), { error: () => new CardDeclined({ order }) })
 * ```
 */
export const step = <A, E, R, E2 = never>(
  name: string,
  effect: Effect.Effect<A, E, R>,
  options: StepOptions<E2> = {}
): Effect.Effect<A, E | E2, R> =>
  Effect.flatMap(CurrentWorker, (worker) => {
    if (worker === undefined) return effect
    const { error } = options
    const failure = (how: string): Effect.Effect<never, E2> =>
      error === undefined
        ? Effect.die(new StepFailed({ message: `The step “${name}” ${how} (a fault of the test kit)` }))
        : Effect.suspend(() => Effect.fail(error()))
    return worker.perform("step", `the step “${name}”`, effect, {
      before: failure("was not carried out"),
      after: failure("was carried out and then failed")
    })
  })
