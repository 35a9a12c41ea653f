import { assert } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import * as BrokerMemory from "../../layers/BrokerMemory.ts"
import * as TaskConsumer from "../../src/messaging/consume/TaskConsumer.ts"
import type { Observed } from "../../src/messaging/observe/Observation.ts"
import { BrokerClient } from "../../src/messaging/publish/BrokerClient.ts"
import type { Topology } from "../../src/messaging/topology/Topology.ts"
import { Broker, type Properties } from "../../src/services/Broker.ts"
import { letters } from "./Letters.ts"
import { shared } from "./SampleTopologies.ts"

/** A broker of its own with a client, for one test. */
export const onMemory =
  (topology: Topology = shared()) =>
  <A, E, R>(test: Effect.Effect<A, E, R>) =>
    test.pipe(
      Effect.scoped,
      Effect.provide(
        BrokerClient.layer({ topology }).pipe(
          Layer.provideMerge(BrokerMemory.layerConnection()),
          Layer.provideMerge(BrokerMemory.layerServer())
        )
      )
    )

/** Lets everything happen that waits for no time to pass. */
export const settleDown = Effect.repeat(TestClock.adjust(0), { times: 10 })

/** A worker that runs beside the test, with all that it observes. */
export const working = Effect.fnUntraced(function* <R>(options: TaskConsumer.Options<R>) {
  const observed: Array<Observed> = []
  const consumer = yield* TaskConsumer.make({ observationSink: (event) => observed.push(event), ...options })
  yield* Effect.forkScoped(consumer.run)
  // what hangs on purpose must not hold up the end of the test, where no time passes
  yield* Effect.addFinalizer(() => Effect.andThen(Effect.forkChild(consumer.stop), TestClock.adjust("1 minute")))
  yield* settleDown
  return { ...consumer, observed, types: () => observed.map(({ event_type }) => event_type) }
})

/** Bytes into a queue, as any client may send them. */
export const drop = Effect.fnUntraced(function* (
  queue: string,
  body: string | Uint8Array,
  properties: Properties = {}
) {
  const { publish } = yield* Broker
  const outcome = yield* publish({
    purpose: "tasks",
    exchange: "",
    routingKey: queue,
    content: Buffer.from(body),
    properties
  })
  assert.strictEqual(outcome._tag, "Confirmed")
})

/** Which statuses were published, in their order. */
export const statuses = Effect.map(letters("status.queue"), (all) =>
  all.map(({ body }) => {
    assert.isTrue(typeof body === "object" && body !== null)
    return Object(body)
  })
)
