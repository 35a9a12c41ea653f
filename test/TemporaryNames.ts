import { randomUUID } from "node:crypto"
import { Context, Effect, Layer } from "effect"
import { Broker } from "../src/services/Broker.ts"

/** Names of queues and exchanges that nobody else uses, and that are removed from the broker with the scope. */
export class TemporaryNames extends Context.Service<
  TemporaryNames,
  {
    readonly queue: (base: string) => string
    readonly exchange: (base: string) => string
  }
>()("test/TemporaryNames") {}

const make = Effect.gen(function* () {
  const broker = yield* Broker
  const prefix = `svc-test-${randomUUID()}:`
  const [queues, exchanges] = [new Set<string>(), new Set<string>()]
  const given = (names: Set<string>) => (base: string) => {
    const name = prefix + base
    names.add(name)
    return name
  }
  yield* Effect.addFinalizer(() => Effect.orDie(broker.remove({ queues: [...queues], exchanges: [...exchanges] })))
  return TemporaryNames.of({ queue: given(queues), exchange: given(exchanges) })
})

/** To a broker. */
export const layer: Layer.Layer<TemporaryNames, never, Broker> = Layer.effect(TemporaryNames, make)
