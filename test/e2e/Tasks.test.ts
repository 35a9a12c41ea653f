import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import * as BrokerAmqp from "../../layers/BrokerAmqp.ts"
import * as RedisIoredis from "../../layers/RedisIoredis.ts"
import { summaryTopology } from "../../src/example/Topologies.ts"
import { ObservationStore } from "../../src/graph/observations/ObservationStore.ts"
import * as RedisObservationStore from "../../src/graph/observations/RedisObservationStore.ts"
import * as WorkflowConsumer from "../../src/messaging/consume/WorkflowConsumer.ts"
import * as WorkflowHandler from "../../src/messaging/consume/WorkflowHandler.ts"
import { BrokerClient } from "../../src/messaging/publish/BrokerClient.ts"
import { eventually } from "../Eventually.ts"
import * as RabbitmqProcess from "../RabbitmqProcess.ts"
import * as RedisProcess from "../RedisProcess.ts"
import * as RunningGateway from "../RunningGateway.ts"
import { connect } from "../status/EventClient.ts"

const within = 180_000

/** A JSON answer, or the text of another one. */
const ask = (url: string, headers: Readonly<Record<string, string>> = {}) =>
  Effect.promise(async () => {
    const answer = await fetch(url, { headers })
    const text = await answer.text()
    const isJson = answer.headers.get("content-type")?.includes("json") === true
    return { status: answer.status, headers: answer.headers, body: isJson ? JSON.parse(text) : text }
  })

/** The metrics of a process, as its operators see them. */
const metrics = ({ control }: RunningGateway.RunningGateway) =>
  Effect.map(ask(`${control}/admin-ui/metrics`), ({ body }) => String(body))

/** Everything that is said of a task to its end. */
const followed = Effect.fnUntraced(function* (url: string) {
  const client = yield* connect(url)
  yield* eventually(
    Effect.sync(() => ({ ended: client.ended, text: client.text })),
    ({ ended }) => ended,
    "30 seconds"
  )
  return client.frames.map(({ data = "{}", event }) => [event, JSON.parse(data).status])
})

/** The book or letter that the example speaks of first. */
const named = (what: "book" | "letter", { output }: RunningGateway.RunningGateway) =>
  Effect.map(
    eventually(
      Effect.sync(() => new RegExp(`The example \\w+ (${what}-\\d+)`).exec(output())?.[1]),
      (id) => id !== undefined,
      "30 seconds"
    ),
    (id) => id ?? ""
  )

/** Asked to end, with an event stream open on which nothing happens. */
const drained = Effect.fnUntraced(function* (gateway: RunningGateway.RunningGateway) {
  const waiting = yield* connect(`${gateway.status}/events/nobody`)
  yield* waiting.until(({ text }) => text.includes("event: ready"))
  assert.match(yield* metrics(gateway), /^svc_status_open_streams 1$/m)
  gateway.signal("SIGTERM")
  assert.strictEqual(yield* Effect.promise(() => gateway.exited), 0, gateway.output())
  yield* waiting.until(({ ended }) => ended)
  assert.match(waiting.text, /retry: \d+\n: the server is going down; reconnect with the id of the last event\n\n$/)
})

/** The example from outside: what is said of its book and its letter, and the letter's replay. */
const told = Effect.fnUntraced(function* (
  working: RunningGateway.RunningGateway,
  { status }: RunningGateway.RunningGateway,
  graph: RunningGateway.RunningGateway
) {
  const letter = yield* named("letter", working)
  const book = yield* named("book", working)
  assert.deepStrictEqual(yield* followed(`${status}/events/${book}`), [
    ["ready", undefined],
    ["status", "aggregation-complete"],
    ["status", "completed"]
  ])
  const latest = yield* ask(`${status}/status/${book}`)
  assert.deepInclude(latest.body.event, { task_id: book, status: "completed", message: "2 chapters, 14 words" })
  for (const source of ["store", "stream"]) {
    const { body } = yield* ask(`${status}/history?task_id=${book}.1&source=${source}`)
    assert.deepStrictEqual(
      body.events.map(({ status }: { status: string }) => status),
      ["processing", "retrying", "processing", "aggregating", "completed"]
    )
  }

  const executions = `${graph.status}/executions`
  const { body: drawn } = yield* eventually(
    ask(`${executions}/${book}/graph`),
    ({ body }) => body.nodes?.length === 32,
    "20 seconds"
  )
  assert.deepStrictEqual(
    drawn.related_task_ids,
    [1, 2, 3].map((page) => `${book}.${page}`)
  )
  assert.deepInclude(drawn.summary, { status: "completed", graph_completeness: "full", completeness_reasons: [] })
  const mermaid = yield* ask(`${executions}/${book}/graph?format=mermaid`)
  assert.match(mermaid.body, /^flowchart LR\n/)
  assert.deepStrictEqual((yield* ask(`${executions}/${book}/view`)).body.graph, drawn)
  assert.deepInclude((yield* ask(`${executions}/${book}/explain`)).body, { verdict: "finished", status: "completed" })

  const sealed = yield* eventually(
    ask(`${executions}/${letter}.1/explain`),
    ({ body }) => body.verdict === "dead_lettered" && body.dlq_id !== null
  )
  const { body: dead } = yield* ask(`${status}/dlq/messages?task_id=${letter}.1`)
  assert.deepStrictEqual(
    dead.items.map(({ dlq_id, exception_type, queue_name }: Record<string, unknown>) => [
      dlq_id,
      exception_type,
      queue_name
    ]),
    [[sealed.body.dlq_id, "PermanentFailure", "svc.example.read.dlq"]]
  )
  const queues = yield* ask(`${status}/broker/dlq/queues`)
  assert.deepInclude(queues.body.queues[0], { queue_name: "svc.example.read.dlq", exists: true, open_count: 1 })
  const reader = yield* connect(`${status}/events/${letter}`)
  const command = RunningGateway.command(["replay", "--queue", "svc.example.read.dlq"], { SVC_STATUS_URL: status })
  assert.strictEqual(yield* Effect.promise(() => command.exited), 0, command.output())
  assert.match(command.output(), /Done: 1 replayed of 1\./)
  yield* reader.until(({ ended, text }) => ended && text.includes(`"status":"completed"`))
  yield* eventually(ask(`${executions}/${letter}.1/explain`), ({ body }) => body.verdict === "finished")

  for (const origin of new Set([status, graph.status])) {
    const { body, status } = yield* ask(`${origin}/nowhere`)
    assert.deepStrictEqual([status, body], [404, { detail: "There is nothing at this path." }])
  }
})

const shown = {
  working: [
    /^svc_messaging_observations_total\{event="ConsumerRetryScheduled",queue="svc\.example\.read"\} [1-9]/m,
    /^svc_messaging_observations_total\{event="ConsumerDeadLetterPublished",queue="svc\.example\.read"\} 1$/m,
    /^svc_dlq_indexed_total 1$/m
  ],
  telling: [
    /^svc_status_hub_lag_ms_count [1-9]/m,
    /^svc_status_hub_events_total\{outcome="stored"\} [1-9]/m,
    /^svc_status_stream_events_sent_total [1-9]/m,
    /^svc_queue_messages\{queue="svc\.example\.read"\} \d/m,
    /^svc_queue_messages\{queue="svc\.example\.read\.dlq"\} \d/m,
    /^svc_dlq_replays_total\{outcome="replayed"\} 1$/m
  ]
}

describe("tasks, in the one process of the role all", () => {
  it.live(
    "are followed, drawn, explained and replayed, over doors in memory",
    () =>
      Effect.gen(function* () {
        const all = yield* RunningGateway.start({ example: true })
        yield* told(all, all, all)
        const text = yield* metrics(all)
        for (const line of [...shown.working, ...shown.telling]) assert.match(text, line)
        yield* drained(all)
      }),
    within
  )

  it.live(
    "are told of to nobody without the token, where there is one",
    () =>
      Effect.gen(function* () {
        const { status } = yield* RunningGateway.start({
          environment: { SVC_STATUS_TOKEN: "the-token" },
          example: true
        })
        for (const path of ["/events/t", "/status/t", "/dlq/messages", "/executions/t/graph", "/nowhere"]) {
          for (const headers of [{}, { authorization: "Bearer another" }]) {
            const refused = yield* ask(status + path, headers)
            assert.deepStrictEqual([refused.status, Object.keys(refused.body)], [401, ["detail"]])
            assert.strictEqual(refused.headers.get("www-authenticate"), "Bearer")
          }
        }
        const taken = yield* ask(`${status}/dlq/messages`, { authorization: "Bearer the-token" })
        assert.deepStrictEqual([taken.status, taken.body.items.length < 2], [200, true])
      }),
    within
  )
})

describe.skipIf(!RabbitmqProcess.available || !RedisProcess.available)("tasks, in a process for each role", () => {
  /** Servers of their own: the example's queues have fixed names, and these are killed. */
  const processes = Effect.gen(function* () {
    const [broker, redis] = yield* Effect.all([RabbitmqProcess.make(), RedisProcess.make("--appendonly", "yes")], {
      concurrency: 2
    })
    const environment = { RABBITMQ_URL: Redacted.value(broker.url), REDIS_URL: Redacted.value(redis.url) }
    const start = (role: "messaging" | "status" | "graph") => RunningGateway.start({ role, environment })
    const [status, graph, working] = yield* Effect.all([start("status"), start("graph"), start("messaging")], {
      concurrency: 3
    })
    return { broker, redis, status, graph, working }
  })

  it.live(
    "are followed, drawn, explained and replayed; event streams are told of the end of their server",
    () =>
      Effect.gen(function* () {
        const { graph, status, working } = yield* processes
        for (const { output } of [graph, status, working]) {
          assert.match(output(), /^ {2}broker +amqp \(RABBITMQ_URL\)$/m)
          assert.match(output(), /^ {2}redis +ioredis \(REDIS_URL\)$/m)
          assert.notInclude(output(), "database")
        }
        yield* told(working, status, graph)
        for (const line of shown.working) assert.match(yield* metrics(working), line)
        for (const line of shown.telling) assert.match(yield* metrics(status), line)
        yield* drained(status)
        for (const one of [graph, working]) {
          one.signal("SIGTERM")
          assert.strictEqual(yield* Effect.promise(() => one.exited), 0, one.output())
        }
      }),
    within
  )

  it.live(
    "are explained where one of the example's workers is down",
    () =>
      Effect.gen(function* () {
        const [broker, redis] = yield* Effect.all([RabbitmqProcess.make(), RedisProcess.make()], { concurrency: 2 })
        const environment = { RABBITMQ_URL: Redacted.value(broker.url), REDIS_URL: Redacted.value(redis.url) }
        const graph = yield* RunningGateway.start({ role: "graph", environment })
        const outliner = Effect.gen(function* () {
          const { publishToEntry } = yield* BrokerClient
          yield* publishToEntry({ task_id: "book", payload: {} }, "book")
          const observationSink = yield* RedisObservationStore.makeRedisObservationSink(yield* ObservationStore)
          const handler = WorkflowHandler.make((_, context) => context.publishToStage("write", { payload: {} }))
          const { run } = yield* WorkflowConsumer.make({ stage: "outline", handler, observationSink })
          yield* Effect.forkScoped(run)
          const asked = yield* eventually(
            ask(`${graph.status}/executions/book/explain`),
            // until it was observed, the queue is a guess
            ({ body }) => body.verdict !== "unknown" && body.queue_name === "svc.example.write"
          )
          assert.deepInclude(asked.body, { verdict: "no_consumer", ready: 1, consumers: 0 })
        })
        yield* Effect.provide(
          outliner,
          Layer.merge(BrokerClient.layer({ topology: summaryTopology }), RedisObservationStore.layer()).pipe(
            Layer.provideMerge(BrokerAmqp.layer({ url: broker.url })),
            Layer.provide(RedisIoredis.layer({ url: redis.url, prefix: "{svc}:" }))
          )
        )
      }).pipe(Effect.scoped),
    within
  )

  it.live(
    "are not ready while Redis or the broker is away, and are when it is back",
    () =>
      Effect.gen(function* () {
        const { broker, graph, redis, status, working } = yield* processes
        const everywhere = (expected: number) =>
          Effect.forEach(
            [status, graph, working],
            ({ control }) =>
              eventually(ask(`${control}/admin-ui/readyz`), (answer) => answer.status === expected, "60 seconds"),
            { concurrency: 3 }
          )
        yield* everywhere(200)
        for (const server of [redis, broker]) {
          yield* server.kill
          yield* everywhere(503)
          yield* server.start
          yield* everywhere(200)
        }
      }),
    within
  )
})
