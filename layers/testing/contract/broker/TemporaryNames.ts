import { randomUUID } from "node:crypto"
import { Context, Effect, Layer } from "effect"
import { Broker } from "../../../../src/services/Broker.ts"

/** Returns names of queues and exchanges that nothing else uses. The scope removes them from the broker. */
export class TemporaryNames extends Context.Service<
  TemporaryNames,
  {
    readonly queue: (base: string) => string
    readonly exchange: (base: string) => string
  }
>()("svc/testing/TemporaryNames") {}

export const make = Effect.gen(function* () {
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

export const layer: Layer.Layer<TemporaryNames, never, Broker> = Layer.effect(TemporaryNames, make)
