import { randomUUID } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import * as Handler from "../../src/messaging/consume/Handler.ts"
import * as TaskConsumer from "../../src/messaging/consume/TaskConsumer.ts"
import type { DeadLetterRecord } from "../../src/messaging/failure/DeadLetter.ts"
import { BrokerClient } from "../../src/messaging/publish/BrokerClient.ts"
import { RetryPolicy } from "../../src/messaging/topology/RetryPolicy.ts"
import { LifecycleStatusConfig, RetryStatusConfig } from "../../src/messaging/topology/StatusSettings.ts"
import { RoutedTasksSharedStatusTopology } from "../../src/messaging/topology/TaskTopology.ts"
import { declarations } from "../../src/messaging/topology/Topology.ts"
import { Broker, type BrokerError } from "../../src/services/Broker.ts"
import { eventually } from "../Eventually.ts"
import * as RunningBroker from "../RunningBroker.ts"
import * as TcpProxy from "../TcpProxy.ts"
import { letters } from "./Letters.ts"

/** A topology of the test's own, and a client over `connection`; everything is gone with the scope. */
const desk = Effect.fnUntraced(function* (connection: Layer.Layer<Broker, BrokerError>) {
  const prefix = `svc-test-${randomUUID()}`
  const queue = `${prefix}.tasks`
  const topology = new RoutedTasksSharedStatusTopology({
    tasks_exchange: `${prefix}.exchange`,
    tasks_queue: queue,
    task_types: ["resize"],
    task_max_priority: 9,
    status_exchange: `${prefix}.status`,
    status_queue: `${prefix}.statuses`,
    status_use_streams: false,
    prefetch_count: 20
  })
  const { exchanges, queues } = declarations(topology)
  const others = [`${queue}.dlq`, `${queue}.retry.300ms.quorum`, `${queue}.other`]
  yield* Effect.addFinalizer(() =>
    Effect.flatMap(Broker, (broker) =>
      broker.remove({
        queues: [...queues.map(({ name }) => name), ...others],
        exchanges: exchanges.map(({ name }) => name)
      })
    ).pipe(Effect.provide(RunningBroker.layer()), Effect.orDie)
  )
  const layer = Layer.provideMerge(BrokerClient.layer({ topology }), connection)
  return { layer, queue, topology }
})

const retryPolicy = new RetryPolicy({ max_retries: 1, delay_ms: 300 })

const atWork = Effect.fnUntraced(function* <R>(options: TaskConsumer.Options<R>) {
  const consumer = yield* TaskConsumer.make(options)
  yield* Effect.forkScoped(consumer.run)
  yield* Effect.addFinalizer(() => consumer.stop)
})

const until = <A>(value: () => A, condition: (value: A) => boolean) => eventually(Effect.sync(value), condition)

const messagesIn = (queue: string) =>
  Effect.flatMap(BrokerClient, ({ inspectQueue }) =>
    Effect.map(inspectQueue(queue), (found) => Option.getOrUndefined(found)?.messages)
  )

describe.skipIf(RunningBroker.server === null)("TaskConsumer on a RabbitMQ", () => {
  it.live("retries by the broker's clock, and dead-letters byte for byte with priority and headers", () =>
    Effect.gen(function* () {
      const { layer, queue, topology } = yield* desk(RunningBroker.layer())
      const attempts: Array<readonly [number, number]> = []
      const records: Array<DeadLetterRecord> = []
      yield* Effect.gen(function* () {
        yield* atWork({
          handler: Handler.make((_task, { retryAttempt }) => {
            attempts.push([retryAttempt, performance.now()])
            return Effect.fail(new RangeError("no such page"))
          }),
          retryPolicy,
          retryStatuses: new RetryStatusConfig({ enabled: true }),
          lifecycleStatuses: new LifecycleStatusConfig({ enabled: true }),
          dlqStore: { record: (record) => Effect.sync(() => records.push(record)) }
        })
        const { publishTask } = yield* BrokerClient
        yield* eventually(messagesIn(`${queue}.dlq`), (count) => count === 0)
        yield* publishTask({ task_id: "t1", task_type: "resize", priority: 4 }, { headers: { mine: null } })
        yield* eventually(messagesIn(`${queue}.dlq`), (count) => count === 1)
        yield* until(
          () => records.length,
          (count) => count === 1
        )
        const [dead] = yield* letters(`${queue}.dlq`)
        assert.deepInclude(dead?.body, { task_id: "t1" })
        assert.strictEqual(dead?.properties.priority, 4)
        // what the broker wrote on the way through the retry queue is not carried along
        assert.deepStrictEqual(dead?.properties.headers, {
          task_id: "t1",
          mine: null,
          "x-svc-retry-attempt": 1,
          "x-svc-max-retries": 1,
          "x-svc-source-queue": queue,
          "x-svc-failure-reason": "handler_error",
          "x-svc-exception-type": "RangeError",
          "x-svc-dead-lettered-at": records[0]?.dead_lettered_at.replace("+00:00", "Z") ?? ""
        })
        assert.deepInclude(records[0], { task_id: "t1", retry_attempt: 1, queue_name: `${queue}.dlq` })
        const said = (yield* letters(topology.status.queue)).map(({ body }) => Object(body).status)
        assert.deepStrictEqual(said, ["processing", "retrying", "processing", "failed"])
      }).pipe(Effect.scoped, Effect.provide(layer))
      assert.deepStrictEqual(
        attempts.map(([attempt]) => attempt),
        [0, 1]
      )
      const [[, first] = [0, 0], [, second] = [0, 0]] = attempts
      assert.isAtLeast(second - first, 290)
    }).pipe(Effect.scoped)
  )

  it.live("dead-letters what came with as many headers as can be sent, read or not", () =>
    Effect.gen(function* () {
      const { layer, queue } = yield* desk(RunningBroker.layer())
      let runs = 0
      yield* Effect.gen(function* () {
        const { initialize, publishRawToQueue } = yield* BrokerClient
        yield* initialize
        yield* atWork({ handler: Handler.make(() => Effect.fail(new Error(`run ${++runs}`))), retryPolicy })
        // 64 KiB with the length of the table, the name and the type
        const headers = { pad: "p".repeat(65_536 - 13) }
        for (const body of ['{"task_id":"t1"}', "{"]) yield* publishRawToQueue(queue, Buffer.from(body), { headers })
        yield* eventually(messagesIn(`${queue}.dlq`), (count) => count === 2)
        assert.strictEqual(runs, 2)
        const { get } = yield* (yield* Broker).channel({ prefetch: 2 })
        for (const body of ["{", '{"task_id":"t1"}']) {
          const dead = Option.getOrThrow(yield* get(`${queue}.dlq`))
          assert.strictEqual(Buffer.from(dead.content).toString(), body)
          assert.deepInclude(dead.properties.headers, { "x-svc-source-queue": queue, "x-svc-headers-left-out": 1 })
        }
      }).pipe(Effect.scoped, Effect.provide(layer))
    }).pipe(Effect.scoped)
  )

  it.live("takes a batch apart in order, hands one item over to another queue, and outlives bad messages", () =>
    Effect.gen(function* () {
      const { layer, queue, topology } = yield* desk(RunningBroker.layer())
      const seen: Array<string> = []
      yield* Effect.gen(function* () {
        const { initialize, publishRawToQueue, publishTasks } = yield* BrokerClient
        const broker = yield* Broker
        yield* initialize
        yield* broker.declare({
          exchanges: [],
          queues: [{ name: `${queue}.other` }],
          bindings: [{ exchange: topology.tasks.exchange, queue: `${queue}.other`, routingKey: "rotate" }]
        })
        yield* atWork({
          handler: Handler.make(({ task_id }, context) => {
            seen.push(`${task_id} ${context.batchIndex}/${context.batchSize}`)
            return task_id === "b" ? context.manualRetry({ taskType: "rotate", reason: "too wide" }) : Effect.void
          }),
          retryPolicy
        })
        yield* publishRawToQueue(queue, Buffer.from("{"))
        yield* publishRawToQueue(queue, Uint8Array.of(0xff))
        const task = (task_id: string) => ({ task_id, task_type: "resize", priority: 2 })
        yield* publishTasks(["a", "b", "c"].map(task), { mode: "batch_envelope", batchId: "batch" })
        yield* eventually(messagesIn(`${queue}.other`), (count) => count === 1)
        yield* until(
          () => seen.length,
          (count) => count === 3
        )
        assert.deepStrictEqual(seen, ["a 0/3", "b 1/3", "c 2/3"])
        const [handed] = yield* letters(`${queue}.other`)
        assert.deepInclude(handed?.body, { task_id: "b", task_type: "rotate" })
        assert.strictEqual(handed?.properties.headers?.["x-svc-manual-retry-count"], 1)
        yield* eventually(messagesIn(`${queue}.dlq`), (count) => count === 2)
      }).pipe(Effect.scoped, Effect.provide(layer))
    }).pipe(Effect.scoped)
  )

  it.live("goes on after its connection was cut: lost handlers are interrupted, and every task is handled", () =>
    Effect.gen(function* () {
      const proxy = yield* TcpProxy.make(RunningBroker.target())
      const connection = RunningBroker.layer({ url: RunningBroker.through(proxy) })
      const { layer, queue } = yield* desk(connection)
      const handled = new Map<string, number>()
      const interrupted: Array<string> = []
      let redelivered = 0
      const count = 400
      yield* Effect.gen(function* () {
        const { initialize, publishTasks } = yield* BrokerClient
        yield* initialize
        yield* publishTasks(Array.from({ length: count }, (_, n) => ({ task_id: `t${n}`, task_type: "resize" })))
        yield* atWork({
          handler: Handler.make(({ task_id }, context) => {
            if (context.redelivered) redelivered++
            return Effect.sleep(task_id === "t7" && !context.redelivered ? "1 hour" : "20 millis").pipe(
              Effect.onInterrupt(() => Effect.sync(() => interrupted.push(task_id))),
              Effect.andThen(Effect.sync(() => handled.set(task_id, (handled.get(task_id) ?? 0) + 1)))
            )
          }),
          retryPolicy,
          lifecycleStatuses: new LifecycleStatusConfig({ enabled: true })
        })
        yield* until(
          () => handled.size,
          (size) => size > 50
        )
        yield* proxy.cut
        yield* until(
          () => interrupted.length,
          (size) => size > 0
        )
        yield* proxy.restore
        yield* until(
          () => handled.size,
          (size) => size === count
        )
        yield* eventually(messagesIn(queue), (left) => left === 0)
      }).pipe(Effect.scoped, Effect.provide(layer))
      assert.include(interrupted, "t7")
      const twice = Array.from(handled.values()).reduce((sum, times) => sum + times - 1, 0)
      assert.isAtMost(twice, redelivered)
    }).pipe(Effect.scoped)
  )

  it.live("a handler that blocks the event loop until the broker gives the connection up hurts nobody else", () =>
    Effect.gen(function* () {
      const { layer, queue } = yield* desk(RunningBroker.layer({ heartbeatSeconds: 1 }))
      const handled = new Set<string>()
      yield* Effect.gen(function* () {
        const { publishTask } = yield* BrokerClient
        yield* atWork({
          handler: Handler.make(({ task_id }, { redelivered }) =>
            Effect.sync(() => {
              if (task_id === "t5" && !redelivered) {
                Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 4_000)
              }
              handled.add(task_id)
            })
          ),
          retryPolicy
        })
        yield* Effect.forEach(
          Array.from({ length: 30 }, (_, n) => `t${n}`),
          (task_id) => publishTask({ task_id, task_type: "resize" })
        ).pipe(Effect.ignore)
        yield* until(
          () => handled.size,
          (size) => size >= 6
        )
        yield* eventually(messagesIn(queue), (left) => left === 0)
        yield* publishTask({ task_id: "afterwards", task_type: "resize" })
        yield* until(
          () => handled.has("afterwards"),
          (is) => is
        )
      }).pipe(Effect.scoped, Effect.provide(layer))
    }).pipe(Effect.scoped)
  )
})
