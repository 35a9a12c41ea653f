import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, type Scope, Tracer } from "effect"
import * as AggregationConsumer from "../../src/messaging/consume/AggregationConsumer.ts"
import * as AggregationHandler from "../../src/messaging/consume/AggregationHandler.ts"
import * as Handler from "../../src/messaging/consume/Handler.ts"
import * as TaskConsumer from "../../src/messaging/consume/TaskConsumer.ts"
import * as WorkflowConsumer from "../../src/messaging/consume/WorkflowConsumer.ts"
import * as WorkflowHandler from "../../src/messaging/consume/WorkflowHandler.ts"
import { traceHeaders } from "../../src/messaging/index.ts"
import * as Observation from "../../src/messaging/observe/Observation.ts"
import { BrokerClient } from "../../src/messaging/publish/BrokerClient.ts"
import { RetryPolicy } from "../../src/messaging/topology/RetryPolicy.ts"
import type { Topology } from "../../src/messaging/topology/Topology.ts"
import type { Broker, Fields } from "../../src/services/Broker.ts"
import { atWork, desk, observer, pass, settleDown } from "./AtWork.ts"
import { letters } from "./Letters.ts"
import { sharded, shared, workflow } from "./SampleTopologies.ts"

const traceId = "0af7651916cd43dd8448eb211c80319c"
const spanId = "b7ad6b7169203331"

/** With a tracer, whose spans come in the order of their beginnings: those of messages, and not those of declaring. */
const traced = <A, E>(
  topology: Topology,
  test: (spans: ReadonlyArray<Tracer.NativeSpan>) => Effect.Effect<A, E, BrokerClient | Broker | Scope.Scope>
) =>
  Effect.suspend(() => {
    const spans: Array<Tracer.NativeSpan> = []
    const tracer = Tracer.make({
      span: (options) => {
        const span = new Tracer.NativeSpan(options)
        if (!isOfDeclaring(span.name)) spans.push(span)
        return span
      }
    })
    return test(spans).pipe(
      Effect.scoped,
      Effect.provide(desk({ topology })),
      Effect.provideService(Tracer.Tracer, tracer)
    )
  })

const isOfDeclaring = (name: string): boolean => /^(BrokerClient|RetryQueues|TopologyPlan)\./.test(name)

/** A task as somebody else has published it. */
const drop = (queue: string, headers: Fields) =>
  Effect.flatMap(BrokerClient, ({ publishRawToQueue }) =>
    publishRawToQueue(queue, Buffer.from('{"task_id":"t1"}'), { headers })
  )

/** The id of the span that a span is below. */
const above = (span: Tracer.NativeSpan | undefined): string | undefined =>
  span && Option.getOrUndefined(span.parent)?.spanId

const lineage = (spans: ReadonlyArray<Tracer.NativeSpan>) =>
  spans.map(({ name, parent }) => {
    const above = Option.getOrUndefined(parent)
    return `${name} < ${above === undefined ? "nothing" : above._tag === "Span" ? above.name : "somebody else"}`
  })

describe("a trace", () => {
  it.effect("goes on from a publish to the handler, and into every status and observation of it", () => {
    const observed = observer()
    return traced(shared(), (spans) =>
      Effect.gen(function* () {
        yield* atWork(
          TaskConsumer.make({
            handler: Handler.make((_, context) => context.publishStatus("searching")),
            observationSink: observed.sink
          })
        )
        const { publishTask } = yield* BrokerClient
        yield* Effect.withSpan(publishTask({ task_id: "t1" }), "request")
        yield* settleDown
        assert.deepStrictEqual(lineage(spans), [
          "request < nothing",
          "publish tasks < request",
          "process tasks.queue < somebody else",
          "publish status < process tasks.queue"
        ])
        const [request, published, processed, told] = spans
        assert.deepStrictEqual(
          spans.map(({ traceId }) => traceId),
          spans.map(() => request?.traceId)
        )
        assert.strictEqual(above(processed), published?.spanId)
        assert.strictEqual(processed?.kind, "consumer")
        assert.deepInclude(Object.fromEntries(published?.attributes ?? []), {
          "messaging.system": "rabbitmq",
          "messaging.operation.name": "publish",
          "messaging.operation.type": "send",
          "messaging.destination.name": "tasks:tasks.key",
          "messaging.rabbitmq.destination.routing_key": "tasks.key",
          "messaging.message.conversation_id": "t1"
        })
        assert.deepInclude(Object.fromEntries(processed?.attributes ?? []), {
          "messaging.system": "rabbitmq",
          "messaging.operation.name": "process",
          "messaging.operation.type": "process",
          "messaging.destination.name": "tasks:tasks.key:tasks.queue",
          "messaging.destination.subscription.name": "tasks.queue"
        })
        assert.isFalse(processed?.attributes.has("svc.retry_attempt"))
        const [status] = yield* letters("status.queue")
        const ids = { trace_id: request?.traceId ?? "", span_id: processed?.spanId ?? "" }
        assert.deepInclude(status?.body, ids)
        assert.strictEqual(status?.properties.headers?.["traceparent"], `00-${told?.traceId}-${told?.spanId}-01`)
        const [started, ...others] = observed.all()
        assert.notProperty(started, "trace_id")
        assert.deepStrictEqual(
          others.map(({ event_type }) => event_type),
          ["TaskMessageReceived", "TaskMessageAcked"]
        )
        for (const other of others) {
          assert.deepStrictEqual({ trace_id: other.trace_id, span_id: other.span_id }, ids)
          assert.deepStrictEqual(Observation.decode(Observation.encode(other)), Option.some(other))
        }
      })
    )
  })

  it.effect("goes through a retry, and tells which of its attempts failed", () =>
    traced(shared(), (spans) =>
      Effect.gen(function* () {
        yield* atWork(
          TaskConsumer.make({
            handler: Handler.make((_, { retryAttempt }) =>
              retryAttempt === 0 ? Effect.fail(new RangeError("no such page")) : Effect.void
            ),
            retryPolicy: new RetryPolicy({ max_retries: 1 })
          })
        )
        yield* drop("tasks.queue", { traceparent: `00-${traceId}-${spanId}-01` })
        yield* pass("30 seconds")
        assert.deepStrictEqual(lineage(spans), [
          "process tasks.queue < somebody else",
          "publish tasks.queue.retry.30000ms.quorum < process tasks.queue",
          "process tasks.queue < somebody else"
        ])
        assert.isTrue(spans.every((span) => span.traceId === traceId))
        const [first, retry, second] = spans
        assert.strictEqual(above(first), spanId)
        assert.strictEqual(above(second), retry?.spanId)
        // the message goes on below the span of its retry, which names the span that made the message
        assert.deepStrictEqual(
          retry?.links.map(({ span }) => span.spanId),
          [spanId]
        )
        assert.strictEqual(second?.attributes.get("svc.retry_attempt"), 1)
        assert.strictEqual(first?.attributes.get("error.type"), "RangeError")
        const ends = [first, second].map((span) => span?.status._tag === "Ended" && span.status.exit._tag)
        assert.deepStrictEqual(ends, ["Failure", "Success"])
      })
    )
  )

  it.effect("goes from a handler to the servers that it calls", () =>
    traced(shared(), (spans) =>
      Effect.gen(function* () {
        const sent: Array<unknown> = []
        yield* atWork(
          TaskConsumer.make({ handler: Handler.make(() => Effect.map(traceHeaders, (headers) => sent.push(headers))) })
        )
        yield* drop("tasks.queue", { traceparent: `00-${traceId}-${spanId}-01` })
        yield* drop("tasks.queue", { traceparent: `00-${traceId}-${spanId}-00` })
        yield* settleDown
        assert.deepStrictEqual(sent, [
          { traceparent: `00-${traceId}-${spans[0]?.spanId}-01` },
          { traceparent: `00-${traceId}-${spanId}-00` }
        ])
      })
    )
  )

  it.effect("goes through a workflow from stage to stage", () =>
    traced(workflow(), (spans) =>
      Effect.gen(function* () {
        yield* atWork(
          WorkflowConsumer.make({
            stage: "outline",
            handler: WorkflowHandler.make(({ payload }, { publishToStage }) => publishToStage("write", { payload }))
          })
        )
        yield* atWork(
          WorkflowConsumer.make({
            stage: "write",
            handler: WorkflowHandler.make((_, { publishStatus }) => publishStatus("completed"))
          })
        )
        const { publishToEntry } = yield* BrokerClient
        yield* Effect.withSpan(publishToEntry({ task_id: "t1" }, "start"), "request")
        yield* settleDown
        assert.deepStrictEqual(
          spans.map(({ name }) => name),
          [
            "request",
            "publish workflow",
            "process outline.queue",
            "publish workflow",
            "process write.queue",
            "publish status"
          ]
        )
        assert.strictEqual(new Set(spans.map(({ traceId }) => traceId)).size, 1)
        const [status] = yield* letters("status.queue")
        assert.deepInclude(status?.body, { trace_id: spans[0]?.traceId, span_id: spans[4]?.spanId })
      })
    )
  )

  it.effect("goes from a child's status into the aggregation, and is no part of what the status is", () =>
    traced(sharded(), (spans) =>
      Effect.gen(function* () {
        const seen: Array<unknown> = []
        const { queue } = yield* atWork(
          AggregationConsumer.make({
            shards: [1],
            handler: AggregationHandler.make((event) => Effect.sync(() => seen.push(event)))
          })
        )
        const { publishAggregationStatus } = yield* BrokerClient
        const event = {
          task_id: "child",
          status: "completed",
          meta: { parent_task_id: "parent-1" },
          timestamp: "2026-04-06T10:00:00Z"
        }
        const publish = Effect.withSpan(publishAggregationStatus(event), "child")
        yield* publish
        yield* publish
        yield* settleDown
        assert.strictEqual(spans.filter(({ name }) => name === `process ${queue}`).length, 2)
        assert.strictEqual(new Set(spans.map(({ traceId }) => traceId)).size, 2)
        const [first, second] = yield* letters("status.queue")
        assert.deepInclude(first?.body, { trace_id: spans[0]?.traceId })
        assert.strictEqual(Object(first?.body).event_id, Object(second?.body).event_id)
        assert.notStrictEqual(Object(first?.body).trace_id, Object(second?.body).trace_id)
        assert.deepStrictEqual(seen[0], first?.body)
      })
    )
  )

  it.effect("is the caller's where a status names one already", () =>
    traced(shared(), () =>
      Effect.gen(function* () {
        const { publishStatus } = yield* BrokerClient
        yield* Effect.withSpan(publishStatus({ task_id: "t1", status: "seen", trace_id: "mine" }), "request")
        const [status] = yield* letters("status.queue")
        assert.strictEqual(Object(status?.body).trace_id, "mine")
        assert.notProperty(status?.body, "span_id")
      })
    )
  )

  it.effect.each([
    `00-${traceId.toUpperCase()}-${spanId}-01`,
    `00-${traceId}-${spanId}`,
    `00-${traceId}-${spanId}-01-`,
    `00-${traceId}-${spanId}-1`,
    `00-${"0".repeat(32)}-${spanId}-01`,
    `00-${traceId}-${"0".repeat(16)}-01`,
    `ff-${traceId}-${spanId}-01`,
    ` 00-${traceId}-${spanId}-01`,
    "",
    7,
    null,
    undefined
  ])("begins where a message says traceparent %j", (traceparent) =>
    traced(shared(), (spans) =>
      Effect.gen(function* () {
        const consumer = yield* TaskConsumer.make({ handler: Handler.make(() => Effect.void) })
        // not below what the worker was started in
        yield* atWork(Effect.succeed({ ...consumer, run: Effect.withSpan(consumer.run, "worker") }))
        yield* drop("tasks.queue", traceparent === undefined ? {} : { traceparent })
        yield* settleDown
        const [worker, processed] = spans
        assert.deepStrictEqual(lineage(spans), ["worker < nothing", "process tasks.queue < nothing"])
        assert.notStrictEqual(processed?.traceId, worker?.traceId)
        assert.notStrictEqual(processed?.traceId, traceId)
      })
    )
  )

  it.effect("that its publisher does not sample is sampled by nobody, and goes on so", () => {
    const observed = observer()
    return traced(shared(), (spans) =>
      Effect.gen(function* () {
        yield* atWork(
          TaskConsumer.make({
            handler: Handler.make((_, context) => context.publishStatus("searching")),
            observationSink: observed.sink
          })
        )
        const traceparent = `00-${traceId}-${spanId}-00`
        yield* drop("tasks.queue", { traceparent })
        yield* settleDown
        assert.deepStrictEqual(spans, [])
        const [status] = yield* letters("status.queue")
        assert.strictEqual(status?.properties.headers?.["traceparent"], traceparent)
        assert.notProperty(status?.body, "trace_id")
        assert.isTrue(observed.all().every((observation) => !("trace_id" in observation)))
      })
    )
  })

  it.effect("is nowhere without a tracer, but passes through retries as it came", () =>
    Effect.gen(function* () {
      yield* atWork(
        TaskConsumer.make({
          handler: Handler.make((_, context) =>
            Effect.andThen(context.publishStatus("searching"), Effect.fail("no")).pipe(Effect.withSpan("handler"))
          ),
          retryPolicy: new RetryPolicy({ max_retries: 0 })
        })
      )
      assert.deepStrictEqual(yield* Effect.withSpan(traceHeaders, "handler"), {})
      const headers = { traceparent: `00-${traceId}-${spanId}-01`, tracestate: "vendor=1" }
      yield* drop("tasks.queue", headers)
      yield* settleDown
      const [status] = yield* letters("status.queue")
      assert.notProperty(status?.body, "trace_id")
      assert.notProperty(status?.properties.headers, "traceparent")
      const [dead] = yield* letters("tasks.queue.dlq")
      assert.deepInclude(dead?.properties.headers, headers)
    }).pipe(Effect.scoped, Effect.provide(desk({ topology: shared() })))
  )
})
