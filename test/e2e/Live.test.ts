import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import * as RunningBroker from "../RunningBroker.ts"
import * as RunningGateway from "../RunningGateway.ts"
import { connect, type EventClient } from "../status/EventClient.ts"
import { chat } from "./Calls.ts"
import * as Deployment from "./Deployment.ts"
import * as OwnTasks from "./OwnTasks.ts"

/** Two processes, each with a gateway, an operator API, workers and a hub. */
const setting = Effect.gen(function* () {
  const name = RunningBroker.name("live")
  yield* OwnTasks.removed(name)
  const deployment = yield* Deployment.make({
    environment: { OWN_TASKS: name, RABBITMQ_URL: RunningBroker.server ?? "" }
  })
  const start = deployment.start({ tasks: OwnTasks.module })
  const [first, second] = yield* Effect.all([start, start], { concurrency: 2 })
  const key = yield* Effect.promise(() => RunningGateway.createKey(first, { policy: { max_requests_per_day: limit } }))
  return { adminToken: deployment.adminToken, first, key, name, second }
})

const limit = 100

const listen = (control: string, token: string, lastEventId?: string) =>
  connect(`${control}/admin-ui/live`, {
    authorization: `Bearer ${token}`,
    ...(lastEventId !== undefined && { "last-event-id": lastEventId })
  })

const Live = Schema.fromJsonString(
  Schema.Record(
    Schema.String,
    Schema.Record(
      Schema.String,
      Schema.Struct({ count: Schema.Int, latest: Schema.Array(Schema.Record(Schema.String, Schema.Unknown)) })
    )
  )
)
const decode = Schema.decodeUnknownSync(Live)

const happened = (client: EventClient, topic: string, kind: string) =>
  client.frames.flatMap(({ data, event }) => {
    const found = event === "live" ? decode(data)[topic]?.[kind] : undefined
    return found === undefined ? [] : [found]
  })

const count = (client: EventClient, topic: string, kind: string): number =>
  happened(client, topic, kind).reduce((sum, { count }) => sum + count, 0)

const details = (client: EventClient, topic: string, kind: string) =>
  happened(client, topic, kind).flatMap(({ latest }) => latest)

const isReady = ({ text }: EventClient): boolean => text.includes("event: ready")

const each = <A>(clients: ReadonlyArray<A>, until: (client: A) => Effect.Effect<void>) =>
  Effect.forEach(clients, until, { concurrency: "unbounded", discard: true })

describe.skipIf(!Deployment.available || RunningBroker.server === null)("what happens in two processes", () => {
  it.live(
    "is shown to fifty listeners, each time once, also when they reconnect to the other process",
    () =>
      Effect.gen(function* () {
        const { adminToken, first, key, name, second } = yield* setting
        const limited = yield* Effect.promise(() =>
          first.operate("POST", "/operator-tokens", { name: "limited", scopes: ["usage:read"] })
        )
        const { raw_token } = Schema.decodeUnknownSync(Schema.Struct({ raw_token: Schema.String }))(limited)
        const here = yield* Effect.forEach(Array.from({ length: 24 }), () => listen(first.control, adminToken))
        const there = yield* Effect.forEach(Array.from({ length: 24 }), () => listen(second.control, adminToken))
        const narrow = yield* listen(second.control, raw_token)
        const stalled = yield* listen(second.control, adminToken)
        yield* each([...here, ...there, narrow, stalled], (client) => client.until(isReady))
        stalled.pause()

        const ask = (times: number) =>
          Effect.forEach(
            Array.from({ length: times }, (_, at) => (at % 2 === 0 ? first : second)),
            (gateway) => Effect.map(chat(gateway, key.raw), ({ status }) => assert.strictEqual(status, 200)),
            { concurrency: 8, discard: true }
          )
        yield* ask(60)
        assert.strictEqual((yield* chat(second, "rk_live_unknown")).status, 401)
        const { orders } = OwnTasks.topologiesOf(name)
        yield* OwnTasks.publish(orders, { task_id: "small", task_type: "pay", payload: { total: 5 } })
        yield* OwnTasks.publish(orders, { task_id: "large", task_type: "pay", payload: { total: 500 } })
        yield* Effect.promise(() => first.operate("POST", "/projects", { name: "shown" }))
        yield* Effect.promise(() =>
          fetch(`${second.status}/queues/${name}.letters/pause`, {
            method: "POST",
            body: JSON.stringify({ reason: "shown" })
          })
        )

        const all = [...here, ...there]
        const hasAll = (client: EventClient) =>
          count(client, "requests", "ended") >= 60 &&
          count(client, "requests", "refused") > 0 &&
          count(client, "configuration", "changed") > 0 &&
          count(client, "dead_letters", "added") > 0 &&
          count(client, "limits", "crossed_50") > 0 &&
          details(client, "queues", "changed").some(({ state }) => state === "paused") &&
          details(client, "tasks", "status").some(({ status }) => status === "paid")
        yield* each(all, (client) => client.until(hasAll))
        for (const client of all) {
          const requests = ["started", "ended", "refused"].map((kind) => count(client, "requests", kind))
          assert.deepStrictEqual(requests, [61, 60, 1])
          assert.strictEqual(count(client, "limits", "crossed_50"), 1)
          assert.strictEqual(count(client, "configuration", "changed"), 1)
          assert.strictEqual(count(client, "dead_letters", "added"), 1)
          const events = details(client, "tasks", "status").map(({ event_id }) => event_id)
          assert.strictEqual(new Set(events).size, count(client, "tasks", "status"))
          assert.deepInclude(details(client, "requests", "ended")[0], { status: 200, key_id: key.id, model: "m" })
        }

        for (const client of here) client.hangUp()
        yield* ask(10)
        const resumed = yield* Effect.forEach(here, ({ lastEventId }) =>
          listen(second.control, adminToken, lastEventId)
        )
        yield* ask(2)
        yield* each(resumed, (client) => client.until((client) => count(client, "requests", "ended") >= 12))
        yield* each(there, (client) => client.until((client) => count(client, "requests", "ended") >= 72))
        for (const client of resumed) {
          assert.strictEqual(count(client, "requests", "ended"), 12)
          assert.strictEqual(count(client, "requests", "started"), 12)
          assert.notInclude(client.text, "event: reset")
        }
        yield* narrow.until((client) => count(client, "requests", "ended") >= 72)
        assert.notMatch(narrow.text, /"(configuration|tasks|dead_letters|queues|workers)":/)
        stalled.resume()
        yield* stalled.until((client) => count(client, "requests", "ended") === 72)

        second.signal("SIGTERM")
        assert.strictEqual(yield* Effect.promise(() => second.exited), 0, second.output())
        assert.match(there[0]?.text ?? "", /retry: \d+\n: the server is going down[^\n]*\n\n$/)
      }),
    120_000
  )
})
