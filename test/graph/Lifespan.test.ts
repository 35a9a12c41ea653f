import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer } from "effect"
import * as BrokerMemory from "../../layers/BrokerMemory.ts"
import * as RedisMemory from "../../layers/RedisMemory.ts"
import * as Lifespan from "../../src/graph/Lifespan.ts"
import { declarations } from "../../src/messaging/Topology.ts"
import { Broker } from "../../src/services/Broker.ts"
import { HistoryReader } from "../../src/status/History.ts"
import { StatusStore } from "../../src/status/StatusStore.ts"
import { eventually } from "../Eventually.ts"
import { shared } from "../messaging/SampleTopologies.ts"

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
  options: Partial<Lifespan.Options>,
  before: ReadonlyArray<string>,
  test: Effect.Effect<A, E, R>
) =>
  Effect.gen(function* () {
    yield* (yield* Broker).declare(declarations(topology))
    for (const body of before) yield* say(body)
    return yield* Effect.provide(test, Lifespan.layer({ topology, ...options }))
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
        Effect.exit(Layer.build(Lifespan.stores({ topology, storeTtlSeconds: seconds })))
      assert.isTrue(Exit.isSuccess(yield* years(10 * 365 * 86_400)))
      assert.isTrue(Exit.isFailure(yield* years(10 * 365 * 86_400 + 1)))
    }).pipe(Effect.scoped, Effect.provide(doors))
  )

  it.live("begins with the first event of the stream, or where its hub is told to", () =>
    Effect.gen(function* () {
      const said = ["a", "b", "c"].map((status) => JSON.stringify({ task_id: "t", status }))
      const storedBy = (options: Partial<Lifespan.Options>, count: number) =>
        Effect.map(living(options, said, stored(count)), (events) => events.map(({ status }) => status).join(" "))
      assert.strictEqual(yield* storedBy({}, 3), "a b c")
      assert.strictEqual(yield* storedBy({ hubConsumeArguments: { "x-stream-offset": 2 } }, 1), "c")
    })
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
