import { Effect, Option } from "effect"
import { Broker, type Delivery } from "../../src/services/Broker.ts"

/** What lies in a queue, as a person would look at it. */
export interface Letter {
  readonly exchange: string
  readonly routingKey: string
  readonly body: unknown
  readonly properties: Delivery["properties"]
}

/** Takes everything out of a queue; `taken` hears of each at once, also where the rest cannot be taken. */
export const letters = (
  queue: string,
  taken?: (letter: Letter) => void
): Effect.Effect<ReadonlyArray<Letter>, never, Broker> =>
  Effect.gen(function* () {
    const broker = yield* Broker
    const channel = yield* broker.channel({ prefetch: 100 })
    const all: Array<Letter> = []
    for (;;) {
      const delivery = Option.getOrUndefined(yield* channel.get(queue))
      if (delivery === undefined) return all
      delivery.settle("ack")
      const { content, exchange, properties, routingKey } = delivery
      const letter = { exchange, routingKey, properties, body: JSON.parse(Buffer.from(content).toString()) }
      all.push(letter)
      taken?.(letter)
    }
  }).pipe(Effect.scoped, Effect.orDie)
