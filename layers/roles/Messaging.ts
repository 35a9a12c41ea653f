import { Effect, Layer } from "effect"
import { Readiness } from "../../src/control/Readiness.ts"
import { Broker } from "../../src/services/Broker.ts"

export const layer = Layer.empty

/** The broker answers, and the process is not draining. */
export const readiness = Layer.effect(
  Readiness,
  Effect.flatMap(Broker, (broker) => Readiness.when([broker.ping]))
)
