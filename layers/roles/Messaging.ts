import { Effect, Layer } from "effect"
import { Readiness } from "../../src/control/Readiness.ts"
import * as Library from "../../src/messaging/example/Library.ts"
import * as Workers from "../../src/messaging/example/Workers.ts"
import { Broker } from "../../src/services/Broker.ts"

/** The workers of the example and who gives them work, with the broker left open. */
export const layer = Layer.merge(Workers.layer, Library.layer)

/** The broker answers, and the process is not draining. */
export const readiness = Layer.effect(
  Readiness,
  Effect.flatMap(Broker, (broker) => Readiness.when([broker.ping]))
)
