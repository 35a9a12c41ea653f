import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Option } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import * as BrokerMemory from "../../layers/BrokerMemory.ts"
import * as RedisMemory from "../../layers/RedisMemory.ts"
import { ExecutionGraphService } from "../../src/graph/ExecutionGraphService.ts"
import * as GraphRoutes from "../../src/graph/GraphRoutes.ts"
import { ObservationStore } from "../../src/graph/observations/ObservationStore.ts"
import * as StatusRuntime from "../../src/graph/StatusRuntime.ts"
import { ContractAliasConfig } from "../../src/messaging/topology/Aliases.ts"
import { declarations } from "../../src/messaging/topology/Topology.ts"
import { Broker } from "../../src/services/Broker.ts"
import { DeadLetterStore } from "../../src/status/dead-letters/DeadLetterStore.ts"
import { HistoryReader } from "../../src/status/history/History.ts"
import * as DeadLetterRoutes from "../../src/status/http/DeadLetterRoutes.ts"
import * as StatusRoutes from "../../src/status/http/StatusRoutes.ts"
import { HubProgress } from "../../src/status/hub/StatusHub.ts"
import { ReplayJobs } from "../../src/status/replay/ReplayJobs.ts"
import { StatusStore } from "../../src/status/store/StatusStore.ts"
import { eventually } from "../Eventually.ts"
import { shared } from "../messaging/SampleTopologies.ts"
import { deadLetter } from "../status/DeadLetters.ts"

const topology = shared({ status_use_streams: true })

const doors = Layer.merge(BrokerMemory.layer(), RedisMemory.layer({ prefix: "svc-test:" }))

const say = (body: string) =>
  Effect.flatMap(Broker, (broker) =>
    broker.publish({
      purpose: "statuses",
      exchange: topology.status.exchange,
      routingKey: "t",
      content: Buffer.from(body),
      properties: {}
    })
  )

/** With a status stream that was there before. */
const living = <A, E, R>(
  options: Partial<StatusRuntime.Options>,
  before: ReadonlyArray<string>,
  test: Effect.Effect<A, E, R>
) =>
  Effect.gen(function* () {
    yield* (yield* Broker).declare(declarations(topology))
    for (const body of before) yield* say(body)
    return yield* Effect.provide(test, StatusRuntime.layer({ topology, ...options }))
  }).pipe(Effect.provide(doors))

/** What is stored of a task, when so much of it is. */
const stored = (count: number) =>
  Effect.flatMap(StatusStore, ({ history }) =>
    Effect.map(
      eventually(history("t"), ({ events }) => events.length >= count),
      ({ events }) => events.map(({ json }) => JSON.parse(json))
    )
  )

const streamed = Effect.gen(function* () {
  const { stream } = yield* HistoryReader
  assert.isDefined(stream)
  const { events } = yield* stream.read({ taskId: "t", startOffset: "first" })
  return events.map((json) => JSON.parse(json))
})

describe("Lifespan", () => {
  it.effect("keeps everything as long as statuses may be kept", () =>
    Effect.gen(function* () {
      const years = (seconds: number) =>
        Effect.exit(Layer.build(StatusRuntime.stores({ topology, storeTtlSeconds: seconds })))
      assert.isTrue(Exit.isSuccess(yield* years(10 * 365 * 86_400)))
      assert.isTrue(Exit.isFailure(yield* years(10 * 365 * 86_400 + 1)))
    }).pipe(Effect.scoped, Effect.provide(doors))
  )

  it.live("begins with the first event of the stream, or where its hub is told to", () =>
    Effect.gen(function* () {
      const said = ["a", "b", "c"].map((status) => JSON.stringify({ task_id: "t", status }))
      const storedBy = (options: Partial<StatusRuntime.Options>, count: number) =>
        Effect.map(living(options, said, stored(count)), (events) => events.map(({ status }) => status).join(" "))
      assert.strictEqual(yield* storedBy({}, 3), "a b c")
      assert.strictEqual(yield* storedBy({ hubConsumeArguments: { "x-stream-offset": 2 } }, 1), "c")
    })
  )

  it.live.each<[string, Partial<StatusRuntime.Options>]>([
    ["children_maxlen", { store: { children_maxlen: 0 } }],
    ["idleRetrySeconds", { hub: { idleRetrySeconds: 0 } }],
    ["consumeArguments.x-priority", { hubConsumeArguments: { "x-priority": "high" } }],
    ["keepaliveIntervalSeconds", { eventStreams: { keepaliveIntervalSeconds: 0 } }],
    ["maxEvents", { history: { maxEvents: 0 } }],
    ["replay_lease_seconds", { dlqStore: { replay_lease_seconds: 0 } }],
    ["maxJobs", { replayJobs: { maxJobs: 0 } }],
    ["window", { replayWorker: { window: 0 } }],
    ["childrenLimit", { graphs: { childrenLimit: -1 } }]
  ])("fails with a SettingsError that names %s where that cannot be", ([field, options]) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Layer.build(StatusRuntime.layer({ topology, ...options })))
      assert.strictEqual(error._tag, "SettingsError")
      assert.deepStrictEqual(
        error.mistakes.map((mistake) => mistake.field),
        [field]
      )
    }).pipe(Effect.scoped, Effect.provide(doors))
  )

  it.live("has no stores of dead letters and observations where it is told to have none", () =>
    Effect.gen(function* () {
      const built = yield* Layer.build(
        StatusRuntime.layer({ topology, dlqStorePrefix: null, observationStorePrefix: null })
      )
      assert.isTrue(Option.isNone(Context.getOption(built, DeadLetterStore)))
      assert.isTrue(Option.isNone(Context.getOption(built, ReplayJobs)))
      assert.isTrue(Option.isNone(Context.getOption(built, ObservationStore)))
      const { explain } = Context.get(built, ExecutionGraphService)
      yield* (yield* Broker).declare(declarations(topology))
      yield* say('{"task_id":"t","status":"completed"}')
      yield* Context.get(built, HubProgress).caughtUp
      assert.deepInclude(Option.getOrThrow(yield* explain("t")), { verdict: "finished", status: "completed" })
    }).pipe(Effect.scoped, Effect.provide(doors))
  )

  it.live("is told once how things are called, and routers follow", () =>
    Effect.gen(function* () {
      const aliasConfig = new ContractAliasConfig({ field_aliases: { task_id: "job_id" } })
      const routes = Layer.mergeAll(StatusRoutes.layer(), DeadLetterRoutes.layer(), GraphRoutes.layer())
      const served = yield* Layer.build(
        HttpRouter.serve(routes, { disableLogger: true, disableListenLog: true }).pipe(
          Layer.provideMerge(NodeHttpServer.layer(createServer, { host: "127.0.0.1", port: 0 })),
          Layer.provideMerge(StatusRuntime.layer({ topology, aliasConfig }))
        )
      )
      const { caughtUp, started } = Context.get(served, HubProgress)
      yield* started
      yield* say('{"job_id":"t","status":"completed"}')
      yield* caughtUp
      yield* Context.get(served, DeadLetterStore).record(deadLetter(1))
      const { address } = Context.get(served, HttpServer.HttpServer)
      const port = "port" in address ? address.port : 0
      const ask = (path: string) =>
        // biome-ignore lint/suspicious/noExplicitAny: the test looks at the JSON that any client sees
        Effect.promise((): Promise<any> => fetch(`http://127.0.0.1:${port}${path}`).then((answer) => answer.json()))
      assert.deepInclude(yield* ask("/status/t"), { job_id: "t" })
      assert.deepInclude((yield* ask("/history?job_id=t")).events[0], { job_id: "t" })
      assert.deepInclude((yield* ask("/history?job_id=t&source=stream")).events[0], { job_id: "t" })
      assert.deepInclude(yield* ask("/executions/t/explain"), { job_id: "t" })
      assert.deepInclude((yield* ask("/dlq/messages?job_id=task-1")).items[0], { job_id: "task-1" })
      const events = yield* Effect.promise(() =>
        fetch(`http://127.0.0.1:${port}/events/t`).then((answer) => answer.text())
      )
      assert.include(events, '"job_id":"t"')
    }).pipe(Effect.scoped, Effect.provide(doors))
  )

  it.live("hides the same of what is stored and of what the stream has", () =>
    living(
      { hubSanitizeMetaKeys: ["password"] },
      ['{"task_id":"t","status":"a","meta":{"password":"s3cret","page":1}}'],
      Effect.gen(function* () {
        for (const events of [yield* stored(1), yield* streamed]) assert.deepStrictEqual(events[0].meta, { page: 1 })
      })
    )
  )
})
