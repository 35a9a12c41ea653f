import { describe } from "@effect/vitest"
import { Deferred, Effect, Exit, Layer, Option, type Scope } from "effect"
import * as BrokerMemory from "../../../layers/BrokerMemory.ts"
import { BrokerClient } from "../../../src/messaging/publish/BrokerClient.ts"
import type { Topology } from "../../../src/messaging/topology/Topology.ts"
import { Broker, type BrokerError, type Fields } from "../../../src/services/Broker.ts"
import { eventually } from "../../Eventually.ts"
import * as RunningBroker from "../../RunningBroker.ts"
import * as Temporary from "../../TemporaryNames.ts"
import { by } from "../SampleTopologies.ts"

/** Over one of the brokers, with everything that it has named removed in the end. */
type Provided = <A, E>(
  test: Effect.Effect<A, E, Broker | Temporary.TemporaryNames | Scope.Scope>
) => Effect.Effect<A, E | BrokerError>

/** A table of the specification of which the broker is a part, row by row: in memory, and on a RabbitMQ. */
export const onBothBrokers = (table: string, rows: (provided: Provided) => void) => {
  const over =
    (connection: () => Layer.Layer<Broker, BrokerError>): Provided =>
    (test) =>
      test.pipe(Effect.scoped, Effect.provide(Layer.suspend(() => Layer.provideMerge(Temporary.layer, connection()))))
  describe(`${table}, in memory`, () =>
    rows(over(() => Layer.provide(BrokerMemory.layerConnection(), BrokerMemory.layerServer()))))
  describe.skipIf(RunningBroker.server === null)(`${table}, on a RabbitMQ`, () => rows(over(RunningBroker.layer)))
}

/** Parameters of every kind of topology, by names of the test's own, and the names themselves. */
export const named = Effect.map(Temporary.TemporaryNames, (names) => {
  const status = {
    status_exchange: names.exchange("status"),
    status_queue: names.queue("status.queue"),
    // the broker counts the messages of a stream every five seconds only
    status_use_streams: false
  }
  const tasks = { ...status, tasks_exchange: names.exchange("tasks"), tasks_queue: names.queue("tasks.queue") }
  return {
    names,
    shared: { ...tasks, tasks_routing_key: "tasks.key" },
    routed: { ...tasks, task_types: ["resize", "rotate"] },
    shards: {
      shard_count: 4,
      aggregation_queue_template: names.queue("aggregation.queue.{shard}"),
      aggregation_queue_name_prefix: names.queue("aggregation.queue.shards")
    },
    workflow: {
      ...status,
      workflow_exchange: names.exchange("workflow"),
      stages: [
        { name: "plan", queue: names.queue("plan.queue"), ...by("planner.plan.in", "replanner.plan.in") },
        { name: "write", queue: names.queue("write.queue"), ...by("writer.write.in") }
      ],
      entry_routes: [{ name: "again", routing_key: "replanner.plan.in", target_stage: "plan" }]
    }
  }
})
export type Named = Effect.Success<typeof named>

export const clientOf = (topology: Topology) =>
  Effect.tap(BrokerClient.make({ topology }), ({ initialize }) => initialize)

export const ready = (queue: string, count: number) =>
  Effect.flatMap(Broker, ({ inspect }) =>
    eventually(
      Effect.map(inspect(queue), (found) => Option.getOrUndefined(found)?.messages),
      (messages) => messages === count
    )
  )

/** Reads a stream; answers what waits for the first that arrives. */
export const firstOf = Effect.fnUntraced(function* (stream: string, options: Fields) {
  const broker = yield* Broker
  const first = yield* Deferred.make<unknown>()
  yield* broker.consume({
    queue: stream,
    prefetch: 10,
    arguments: options,
    onDelivery: ({ content, settle }) => {
      settle("ack")
      Deferred.doneUnsafe(first, Exit.succeed(JSON.parse(Buffer.from(content).toString())))
    }
  })
  return Effect.timeout(Deferred.await(first), "10 seconds")
})
