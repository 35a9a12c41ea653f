import { Effect, Option } from "effect"
import { Broker, type Delivery } from "../../src/services/Broker.ts"

/** What lies in a queue, as a person would look at it. */
export interface Letter {
  readonly exchange: string
  readonly routingKey: string
  readonly body: unknown
  readonly properties: Delivery["properties"]
}

/** Takes everything out of a queue. */
export const letters = (queue: string): Effect.Effect<ReadonlyArray<Letter>, never, Broker> =>
  Effect.gen(function* () {
    const broker = yield* Broker
    const channel = yield* broker.channel({ prefetch: 100 })
    const all: Array<Letter> = []
    for (;;) {
      const delivery = Option.getOrUndefined(yield* channel.get(queue))
      if (delivery === undefined) return all
      delivery.settle("ack")
      const { content, exchange, properties, routingKey } = delivery
      all.push({ exchange, routingKey, properties, body: JSON.parse(Buffer.from(content).toString()) })
    }
  }).pipe(Effect.scoped, Effect.orDie)
