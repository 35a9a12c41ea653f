import { type Duration, Effect, Layer, Metric, Option, Schedule } from "effect"
import { Broker } from "../../services/Broker.ts"
import { isBrokerUnavailable } from "./DeadLetterQueues.ts"

const messages = Metric.gauge("svc_queue_messages", { description: "Ready messages in a queue" })
const consumers = Metric.gauge("svc_queue_consumers", { description: "Consumers of a queue" })

export interface Options {
  readonly queues: ReadonlyArray<string>
  /** The time between two inspections. Default: 15 seconds. */
  readonly every?: Duration.Input
}

/** Publishes `svc_queue_messages` and `svc_queue_consumers` of the queues. Both are 0 for a missing queue. */
export const layer = ({ every = "15 seconds", queues }: Options): Layer.Layer<never, never, Broker> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const broker = yield* Broker
      const measure = Effect.fnUntraced(function* (queue: string) {
        const found = Option.getOrElse(yield* broker.inspect(queue), () => ({ messages: 0, consumers: 0 }))
        yield* Metric.update(Metric.withAttributes(messages, { queue }), found.messages)
        yield* Metric.update(Metric.withAttributes(consumers, { queue }), found.consumers)
      })
      // While the broker is unavailable, the gauges keep their last values. Other components log the outage.
      const round = Effect.forEach(
        queues,
        (queue) =>
          Effect.catch(measure(queue), (error) => (isBrokerUnavailable(error) ? Effect.fail(error) : Effect.void)),
        { discard: true }
      )
      yield* Effect.forkScoped(Effect.repeat(Effect.ignore(round), Schedule.spaced(every)))
    })
  )
