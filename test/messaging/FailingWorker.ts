import { Effect, Exit, Fiber, Layer, Scope } from "effect"
import * as BrokerMemory from "../../layers/BrokerMemory.ts"
import { Broker } from "../../src/services/Broker.ts"

/**
 * What happens at the n-th publish or settlement of the worker.
 *
 * - `cut before`, `cut after`: its connection breaks just before the broker gets it, or when the broker has carried it out
 *   and before its answer arrives; another one is made at once.
 * - `dead before`, `dead after`: the worker is gone there, with everything that it was doing.
 * - `refused`: the broker does not take the publish. `unanswered`: it takes it, and never says so.
 */
export const faults = ["cut before", "cut after", "dead before", "dead after", "refused", "unanswered"] as const

export interface Fault {
  readonly at: number
  readonly what: (typeof faults)[number]
}

const worker = "worker"

/** The worker's connection, which counts what it asks of the broker, and has one fault. */
export const failing = (fault: Fault | undefined) => {
  /** `doubtful`: publishes of unknown outcome, and deliveries that the broker had given before. */
  const counted = { operations: 0, doubtful: 0 }
  let isDead = false
  const layer = Layer.effect(
    Broker,
    Effect.gen(function* () {
      const server = yield* BrokerMemory.BrokerServer
      const scope = yield* Scope.make()
      yield* Effect.addFinalizer((exit) => Scope.close(scope, exit))
      const broker = yield* Scope.provide(server.connect({ name: worker }), scope)
      const next = () => (++counted.operations === fault?.at ? fault.what : undefined)
      const happen = (what: Fault["what"] | undefined, when: "before" | "after") => {
        if (what === `cut ${when}`) Effect.runSync(server.drop(worker))
        if (what === `dead ${when}`) {
          isDead = true
          Effect.runFork(Scope.close(scope, Exit.void))
        }
      }
      return Broker.of({
        ...broker,
        publish: (publication) =>
          Effect.gen(function* () {
            if (isDead) return yield* Effect.never
            const what = next()
            happen(what, "before")
            if (isDead) return yield* Effect.never
            if (what === "refused") return { _tag: "Refused" as const, reason: "nacked" as const, detail: "full" }
            const publishing = yield* Effect.forkChild(broker.publish(publication), { startImmediately: true })
            happen(what, "after")
            if (isDead) return yield* Effect.never
            const outcome = yield* Fiber.join(publishing)
            const known =
              what === "unanswered"
                ? { _tag: "Unknown" as const, reason: "deadline" as const, detail: "no answer" }
                : outcome
            if (known._tag === "Unknown") counted.doubtful++
            return known
          }),
        consume: (options) =>
          broker.consume({
            ...options,
            onDelivery: (delivery) => {
              if (isDead) return
              options.onDelivery({
                ...delivery,
                settle: (how) => {
                  if (isDead) return "stale"
                  const what = next()
                  happen(what, "before")
                  const settled = isDead ? "stale" : delivery.settle(how)
                  happen(what, "after")
                  return settled
                }
              })
            }
          })
      })
    })
  )
  return { counted, layer }
}
