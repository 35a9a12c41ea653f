import { randomUUID } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import * as AggregationHandler from "../../src/messaging/consume/AggregationHandler.ts"
import * as AggregationWorkerRuntime from "../../src/messaging/consume/AggregationWorkerRuntime.ts"
import * as Handler from "../../src/messaging/consume/Handler.ts"
import * as TaskConsumer from "../../src/messaging/consume/TaskConsumer.ts"
import { BrokerClient } from "../../src/messaging/publish/BrokerClient.ts"
import type { AggregationParameters } from "../../src/messaging/topology/Aggregation.ts"
import { RetryPolicy } from "../../src/messaging/topology/RetryPolicy.ts"
import {
  type SharedParameters,
  SharedTasksSharedStatusShardedAggregationTopology,
  SharedTasksSharedStatusTopology
} from "../../src/messaging/topology/TaskTopology.ts"
import { Broker } from "../../src/services/Broker.ts"
import { eventually } from "../Eventually.ts"
import * as RunningBroker from "../RunningBroker.ts"
import { letters } from "./Letters.ts"
import { logged } from "./Logged.ts"

/** Names of a test's own. */
const naming = () => {
  const prefix = `svc-test-${randomUUID()}`
  const named = (name: string) => `${prefix}.${name}`
  const parameters = {
    status_exchange: named("status"),
    status_queue: named("status.queue"),
    tasks_exchange: named("tasks"),
    tasks_queue: named("queue"),
    tasks_routing_key: "tasks"
  }
  const removed = (...more: ReadonlyArray<string>) =>
    Effect.addFinalizer(() =>
      Effect.flatMap(Broker, (broker) =>
        broker.remove({
          queues: [parameters.status_queue, parameters.tasks_queue, ...more],
          exchanges: [parameters.status_exchange, parameters.tasks_exchange]
        })
      ).pipe(Effect.provide(RunningBroker.layer()), Effect.orDie)
    )
  const shared = (more: Partial<SharedParameters> = {}) =>
    new SharedTasksSharedStatusTopology({ ...parameters, ...more })
  const sharded = (shard_count: number, more: Partial<AggregationParameters> = {}) =>
    new SharedTasksSharedStatusShardedAggregationTopology({
      ...parameters,
      ...more,
      shard_count,
      aggregation_queue_template: named("aggregation.{shard}"),
      aggregation_queue_name_prefix: named("aggregation.shards")
    })
  return { named, parameters, removed, shared, sharded }
}

type Topology = ReturnType<ReturnType<typeof naming>["shared"]>

/** A deployment, from its connection to its end. */
const deployed =
  (topology: Topology | SharedTasksSharedStatusShardedAggregationTopology) =>
  <A, E, R>(life: Effect.Effect<A, E, R>) =>
    life.pipe(
      Effect.scoped,
      Effect.provide(Layer.provideMerge(BrokerClient.layer({ topology }), RunningBroker.layer()))
    )

const working = Effect.fnUntraced(function* (options: TaskConsumer.Options<never>) {
  const { run, stop } = yield* TaskConsumer.make({ idleRetrySeconds: 0.2, ...options })
  yield* Effect.forkScoped(run)
  yield* Effect.addFinalizer(() => stop)
})

const messagesIn = (queue: string) =>
  Effect.map(
    Effect.flatMap(BrokerClient, ({ inspectQueue }) => inspectQueue(queue)),
    (found) => Option.map(found, ({ messages }) => messages)
  )

describe.skipIf(RunningBroker.server === null)("two deployments after one another, on a RabbitMQ", () => {
  it.live("with another retry delay: what waits for the former one comes as well", () =>
    Effect.gen(function* () {
      const { named, removed, shared } = naming()
      const [long, short] = [named("queue.retry.3000ms.quorum"), named("queue.retry.200ms.quorum")]
      yield* removed(long, short, named("queue.dlq"))
      const seen: Array<string> = []
      const handler = Handler.make(({ task_id }, { retryAttempt }) => {
        seen.push(`${task_id} attempt ${retryAttempt}`)
        return retryAttempt === 0 ? Effect.fail("once") : Effect.void
      })
      const publish = (task_id: string) => Effect.flatMap(BrokerClient, ({ publishTask }) => publishTask({ task_id }))

      yield* Effect.gen(function* () {
        yield* working({ handler, retryPolicy: new RetryPolicy({ delay_ms: 3_000 }) })
        yield* publish("early")
        yield* eventually(messagesIn(long), (found) => Option.contains(found, 1))
      }).pipe(deployed(shared()))

      yield* Effect.gen(function* () {
        yield* working({ handler, retryPolicy: new RetryPolicy({ delay_ms: 200 }) })
        yield* publish("late")
        yield* eventually(
          Effect.sync(() => seen.length),
          (count) => count === 4,
          "20 seconds"
        )
        assert.deepStrictEqual(seen.toSorted(), [
          "early attempt 0",
          "early attempt 1",
          "late attempt 0",
          "late attempt 1"
        ])
        // the former queue stays, empty
        assert.deepStrictEqual(yield* messagesIn(long), Option.some(0))
      }).pipe(deployed(shared()))
    }).pipe(Effect.scoped)
  )

  it.live("from a release whose retry queues were classic: what waits in one comes as well", () =>
    Effect.gen(function* () {
      const { named, parameters, removed, shared } = naming()
      const former = named("queue.retry.200ms")
      yield* removed(former, `${former}.quorum`, named("queue.dlq"))
      const seen: Array<string> = []
      const handler = Handler.make(({ task_id }, { retryAttempt }) => {
        seen.push(`${task_id} attempt ${retryAttempt}`)
        return retryAttempt === 0 ? Effect.fail("once") : Effect.void
      })
      yield* Effect.gen(function* () {
        const { initialize, publishRawToQueue, publishTask } = yield* BrokerClient
        yield* initialize
        yield* (yield* Broker).declare({
          exchanges: [],
          queues: [
            {
              name: former,
              arguments: {
                "x-queue-type": "classic",
                "x-message-ttl": 200,
                "x-expires": 86_400_200,
                "x-dead-letter-exchange": "",
                "x-dead-letter-routing-key": parameters.tasks_queue
              }
            },
            { name: named("queue.dlq") }
          ],
          bindings: []
        })
        const body = Buffer.from(JSON.stringify({ task_id: "early" }))
        yield* publishRawToQueue(former, body, { headers: { "x-svc-retry-attempt": 1 } })
        yield* working({ handler, retryPolicy: new RetryPolicy({ delay_ms: 200 }) })
        yield* publishTask({ task_id: "late" })
        yield* eventually(
          Effect.sync(() => seen.length),
          (count) => count === 3,
          "20 seconds"
        )
        assert.deepStrictEqual(seen.toSorted(), ["early attempt 1", "late attempt 0", "late attempt 1"])
      }).pipe(deployed(shared()))
    }).pipe(Effect.scoped)
  )

  it.live("with fewer retries: what has had more than that already fails to the dead letters", () =>
    Effect.gen(function* () {
      const { named, removed, shared } = naming()
      const retry = named("queue.retry.500ms.quorum")
      yield* removed(retry, named("queue.dlq"))
      const attempts: Array<number> = []
      const handler = Handler.make((_task, { retryAttempt }) => {
        attempts.push(retryAttempt)
        return Effect.fail("always")
      })
      yield* Effect.gen(function* () {
        yield* working({ handler, retryPolicy: new RetryPolicy({ max_retries: 9, delay_ms: 500 }) })
        yield* (yield* BrokerClient).publishTask({ task_id: "t" })
        yield* eventually(
          Effect.sync(() => attempts.length),
          (count) => count >= 3,
          "20 seconds"
        )
      }).pipe(deployed(shared()))
      const before = attempts.length
      yield* Effect.gen(function* () {
        yield* working({ handler, retryPolicy: new RetryPolicy({ max_retries: 1, delay_ms: 500 }) })
        yield* eventually(messagesIn(named("queue.dlq")), (found) => Option.contains(found, 1))
        assert.strictEqual(attempts.length, before + 1)
        const [dead] = yield* letters(named("queue.dlq"))
        assert.deepInclude(dead?.properties.headers, { "x-svc-max-retries": 1, "x-svc-retry-attempt": before })
      }).pipe(deployed(shared()))
    }).pipe(Effect.scoped)
  )

  it.live("with another prefetch: as many tasks are worked on at once as it says now", () =>
    Effect.gen(function* () {
      const { removed, shared } = naming()
      yield* removed()
      let inWork = 0
      const handler = Handler.make(() =>
        Effect.andThen(
          Effect.sync(() => inWork++),
          Effect.never
        )
      )
      const atOnce = (prefetch_count: number, before: Effect.Effect<void, unknown, BrokerClient>) =>
        Effect.gen(function* () {
          yield* before
          inWork = 0
          yield* working({ handler, stopWithin: "50 millis" })
          yield* eventually(
            Effect.sync(() => inWork),
            (count) => count >= prefetch_count
          )
          // a moment in which one more could come
          yield* Effect.flatMap(BrokerClient, ({ ping }) => Effect.repeat(ping, { times: 5 }))
          return inWork
        }).pipe(deployed(shared({ prefetch_count })))
      const ten = Array.from({ length: 10 }, (_, n) => ({ task_id: `t${n}` }))
      const publishing = Effect.flatMap(BrokerClient, ({ publishTasks }) => publishTasks(ten))
      assert.deepStrictEqual([yield* atOnce(2, publishing), yield* atOnce(7, Effect.void)], [2, 7])
    }).pipe(Effect.scoped)
  )

  it.live.each([
    {
      change: "another task_max_priority",
      before: { task_max_priority: 9 },
      after: { task_max_priority: 5 },
      sentence: /'x-max-priority'.*received .*'5'.*current is .*'9'/
    },
    {
      change: "another queue type",
      before: { task_queue_type: "classic" as const },
      after: { task_queue_type: "quorum" as const },
      sentence: /'x-queue-type'.*received .*'quorum'.*current is .*'classic'/
    },
    {
      change: "another time that tasks may wait",
      before: { tasks_message_ttl_ms: 60_000 },
      after: {},
      sentence: /'x-message-ttl'.*received none.*current is .*'60000'/
    }
  ])("with $change: one sentence has the argument, both values and the way out, and nothing is lost", (changed) =>
    Effect.gen(function* () {
      const { parameters, removed, shared } = naming()
      yield* removed()
      const handler = Handler.make(() => Effect.void)
      yield* Effect.flatMap(BrokerClient, ({ publishTask }) => publishTask({ task_id: "t" })).pipe(
        deployed(shared(changed.before))
      )

      const log = logged()
      const told: Array<string> = []
      yield* Effect.gen(function* () {
        const { initialize } = yield* BrokerClient
        const { message } = yield* Effect.flip(initialize)
        assert.match(message, changed.sentence)
        assert.include(message, `queue ${parameters.tasks_queue} exists and differs`)
        assert.include(message, "Revert the change, or use another queue name")
        assert.notInclude(message, "\n")
        // and so says a worker, for as long as it is so
        yield* working({
          handler,
          observationSink: (observed) => {
            if (observed.event_type === "TaskConsumerLoopError") told.push(observed.exception_message ?? "")
          }
        })
        yield* eventually(
          Effect.sync(() => told.length),
          (count) => count >= 2
        )
        assert.match(told[0] ?? "", changed.sentence)
        assert.match(log.lines().join("\n"), changed.sentence)
        assert.deepStrictEqual(yield* messagesIn(parameters.tasks_queue), Option.some(1))
      }).pipe(deployed(shared(changed.after)), Effect.provide(log.layer))

      // the first way out
      yield* Effect.gen(function* () {
        yield* working({ handler })
        yield* eventually(messagesIn(parameters.tasks_queue), (found) => Option.contains(found, 0))
      }).pipe(deployed(shared(changed.before)))
    }).pipe(Effect.scoped)
  )

  /** A deployment of aggregation workers, each of which says which queue an event of which parent came by. */
  const aggregating = Effect.fnUntraced(function* (
    topology: SharedTasksSharedStatusShardedAggregationTopology,
    shardGroups: ReadonlyArray<ReadonlyArray<number>>,
    seen: Array<string>
  ) {
    const { queues, start, stop } = yield* AggregationWorkerRuntime.make({
      topology,
      shardGroups,
      handler: AggregationHandler.make(({ task_id }, { sourceQueueName }) =>
        Effect.sync(() => seen.push(`${task_id} ${sourceQueueName}`))
      )
    })
    yield* start
    yield* Effect.addFinalizer(() => stop)
    yield* eventually(
      Effect.flatMap(BrokerClient, ({ inspectQueue }) => Effect.forEach(queues, (queue) => inspectQueue(queue))),
      (found) => found.every((queue) => Option.isSome(queue) && queue.value.consumers === 1)
    )
  })

  const done = (parent: string) =>
    Effect.flatMap(BrokerClient, ({ publishAggregationStatus }) =>
      publishAggregationStatus({ task_id: `c-${parent}`, status: "completed", meta: { parent_task_id: parent } })
    )

  const four = ["p0", "p1", "p2", "p3"]

  it.live("with more shards: every event reaches the one worker of its new shard", () =>
    Effect.gen(function* () {
      const { named, removed, sharded } = naming()
      const queue = (shard: number) => named(`aggregation.${shard}`)
      yield* removed(...[0, 1, 2, 3].map(queue))
      const seen: Array<string> = []
      yield* aggregating(sharded(1), [[0]], seen).pipe(deployed(sharded(1)))
      const log = logged()
      yield* Effect.gen(function* () {
        yield* aggregating(sharded(4), [[0], [1], [2], [3]], seen)
        yield* Effect.forEach(four, done)
        yield* eventually(
          Effect.sync(() => seen.length),
          (count) => count === 4
        )
        // golden: the shards of p0 to p3 are 0 2 3 1
        assert.deepStrictEqual(seen.toSorted(), [
          `c-p0 ${queue(0)}`,
          `c-p1 ${queue(2)}`,
          `c-p2 ${queue(3)}`,
          `c-p3 ${queue(1)}`
        ])
      }).pipe(deployed(sharded(4)), Effect.provide(log.layer))
      assert.deepStrictEqual(
        log.lines().filter((line) => line.includes("left")),
        []
      )
    }).pipe(Effect.scoped)
  )

  it.live(
    "with fewer shards: events go on, and one sentence names the queues that are left over and what is in them",
    () =>
      Effect.gen(function* () {
        const { named, removed, sharded } = naming()
        const queue = (shard: number) => named(`aggregation.${shard}`)
        const group = named("aggregation.shards.0-1")
        yield* removed(...[0, 1, 2, 3].map(queue), group)
        // their workers were stopped before they had worked everything off
        yield* Effect.gen(function* () {
          const { ensureAggregationQueue } = yield* BrokerClient
          yield* Effect.forEach([0, 1, 2, 3], (shard) => ensureAggregationQueue([shard]))
          yield* Effect.forEach(four, done)
        }).pipe(deployed(sharded(4)))

        const log = logged()
        const seen: Array<string> = []
        const left = () => log.lines().filter((line) => line.includes("of an earlier shard configuration"))
        yield* Effect.gen(function* () {
          yield* aggregating(sharded(2), [[0, 1]], seen)
          yield* done("late")
          yield* eventually(
            Effect.sync(() => seen.length),
            (count) => count === 1
          )
          assert.deepStrictEqual(seen, [`c-late ${group}`])
          const [sentence, ...more] = yield* eventually(Effect.sync(left), (lines) => lines.length > 0)
          assert.deepStrictEqual(more, [])
          for (const shard of [0, 1]) assert.include(sentence, `${queue(shard)} (1 event, and more are coming)`)
          for (const shard of [2, 3]) assert.include(sentence, `${queue(shard)} (1 event)`)
          assert.include(
            sentence,
            "Start workers with the earlier configuration until the queues are empty, then delete the queues."
          )
          // nothing is touched
          for (const shard of [2, 3]) assert.deepStrictEqual(yield* messagesIn(queue(shard)), Option.some(1))
        }).pipe(deployed(sharded(2)), Effect.provide(log.layer))
      }).pipe(Effect.scoped)
  )

  it.live("with another aggregation_max_priority: the client and the worker say so in the same sentence", () =>
    Effect.gen(function* () {
      const { named, removed, sharded } = naming()
      const queue = named("aggregation.0")
      yield* removed(queue)
      const ensured = Effect.flatMap(BrokerClient, ({ ensureAggregationQueue }) => ensureAggregationQueue([0]))
      yield* ensured.pipe(deployed(sharded(1)))

      const topology = sharded(1, { aggregation_max_priority: 5 })
      yield* Effect.gen(function* () {
        const { message } = yield* Effect.flip(ensured)
        assert.match(message, /'x-max-priority'.*received .*'5'.*current is .*none/)
        assert.include(message, `queue ${queue} exists and differs`)
        assert.include(message, "Revert the change, or use another queue name")
        const { start } = yield* AggregationWorkerRuntime.make({
          topology,
          shardGroups: [[0]],
          handler: AggregationHandler.make(() => Effect.void)
        })
        assert.strictEqual((yield* Effect.flip(start)).message, message)
      }).pipe(deployed(topology))
    }).pipe(Effect.scoped)
  )
})
