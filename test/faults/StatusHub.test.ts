import { type ChildProcess, spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Redacted, Schedule } from "effect"
import * as BrokerAmqp from "../../layers/BrokerAmqp.ts"
import * as RedisIoredis from "../../layers/RedisIoredis.ts"
import { BrokerClient } from "../../src/messaging/publish/BrokerClient.ts"
import * as RedisStatusStore from "../../src/status/store/RedisStatusStore.ts"
import { StatusStore } from "../../src/status/store/StatusStore.ts"
import { end } from "../EndedProcess.ts"
import { eventually } from "../Eventually.ts"
import * as RabbitmqProcess from "../RabbitmqProcess.ts"
import * as RedisProcess from "../RedisProcess.ts"
import { event } from "../status/Events.ts"
import * as FaultyStatuses from "./FaultyStatuses.ts"

/** How often each fault happens. What broke once is run again with more of them. */
const times = Number(process.env["SVC_TEST_FAULT_TIMES"] ?? 1)

/** For everything to be stored when all is well again: it only has to be sooner than never. */
const patience = "90 seconds"

const tasks = Array.from({ length: 20 }, (_, n) => `t${n}`)

describe.skipIf(!RabbitmqProcess.available || !RedisProcess.available)(
  "status hubs, a RabbitMQ and a Redis that fail under load",
  { timeout: 180_000 + times * 60_000 },
  () => {
    it.live("ten thousand events that passed while no hub was there are stored by the next", () =>
      Effect.gen(function* () {
        const servers = yield* both
        yield* Effect.gen(function* () {
          const hub = yield* crew(servers, "stream", 1)
          const { initialize, publishStatus } = yield* BrokerClient
          yield* initialize
          yield* Effect.forEach(tasks, (task) => publishStatus(event(task, "before")), { discard: true })
          yield* stored(() => ["before"])
          yield* hub.kill
          const ids = Array.from({ length: 500 }, (_, n) => `e${n}`)
          yield* Effect.forEach(tasks, (task) => Effect.forEach(ids, (id) => publishStatus(event(task, id))), {
            concurrency: tasks.length,
            discard: true
          })
          // so none of them has been stored by anybody
          yield* stored(() => ["before"])
          yield* hub.start
          yield* stored(() => ["before", ...ids])
        }).pipe(Effect.provide(doors(servers, true)))
      }).pipe(Effect.scoped)
    )

    for (const kind of ["stream", "queue"] as const) {
      it.live(`${kind}: whatever is killed or frozen, Redis holds every event once`, () =>
        Effect.gen(function* () {
          const servers = yield* both
          const { rabbitmq, redis } = servers
          yield* Effect.gen(function* () {
            const { initialize } = yield* BrokerClient
            yield* initialize
            const hubs = yield* crew(servers, kind, 2)
            const load = yield* publishing
            yield* load.goesOn
            const faults = {
              "hub killed": Effect.andThen(hubs.kill, hubs.start),
              "Redis killed": Effect.andThen(redis.kill, Effect.delay(redis.start, "500 millis")),
              "Redis frozen": Effect.andThen(redis.freeze, Effect.delay(redis.thaw, "2500 millis")),
              "broker killed": Effect.andThen(rabbitmq.kill, rabbitmq.start),
              "everything killed": Effect.all([hubs.kill, redis.kill, rabbitmq.kill]).pipe(
                Effect.andThen(Effect.all([hubs.start, redis.start, rabbitmq.start], { concurrency: 3 }))
              )
            }
            for (let round = 0; round < times; round++) {
              for (const fault of Object.values(faults)) {
                yield* fault
                yield* Effect.sleep("700 millis")
                yield* load.goesOn
              }
            }
            const published = yield* load.end
            // two hubs that share a queue hold events of one task at once
            yield* stored((task) => published.get(task) ?? [], kind === "stream")
          }).pipe(Effect.provide(doors(servers, kind === "stream")))
        }).pipe(Effect.scoped)
      )
    }
  }
)

const both = Effect.all(
  { rabbitmq: RabbitmqProcess.make(), redis: RedisProcess.make("--appendonly", "yes", "--appendfsync", "always") },
  { concurrency: 2 }
)
type Servers = Effect.Success<typeof both>

const doors = ({ rabbitmq, redis }: Servers, streams: boolean) =>
  Layer.mergeAll(
    Layer.provideMerge(
      BrokerClient.layer({ topology: FaultyStatuses.topology(streams) }),
      BrokerAmqp.layer({ url: rabbitmq.url, name: "fault-test", heartbeatSeconds: 1 })
    ),
    Layer.provideMerge(
      RedisStatusStore.layer(FaultyStatuses.kept),
      RedisIoredis.layer({ url: redis.url, prefix: FaultyStatuses.prefix, deadline: "5 seconds" })
    )
  )

/**
 * Hubs, which are killed and started together. One that ends by itself, since it found no Redis when it started, is
 * started again, as whoever runs it would.
 */
const crew = Effect.fnUntraced(function* ({ rabbitmq, redis }: Servers, kind: string, count: number) {
  const program = fileURLToPath(new URL("FaultHub.ts", import.meta.url))
  const args = [program, Redacted.value(rabbitmq.url), Redacted.value(redis.url), kind]
  const one = Effect.fnUntraced(function* () {
    let running: ChildProcess | undefined
    const launch = () => {
      const launched = spawn(process.execPath, args, { stdio: "ignore" })
      running = launched
      launched.once("exit", () => {
        if (running === launched) setTimeout(() => running === launched && launch(), 200)
      })
    }
    const kill = Effect.suspend(() => {
      const killed = running
      running = undefined
      return end(killed, "SIGKILL")
    })
    const start = Effect.sync(launch)
    yield* Effect.acquireRelease(start, () => kill)
    return { kill, start }
  })
  const hubs = yield* Effect.all(Array.from({ length: count }, one))
  return {
    kill: Effect.all(
      hubs.map(({ kill }) => kill),
      { concurrency: "unbounded" }
    ),
    start: Effect.all(hubs.map(({ start }) => start))
  }
})

/** For every task one publisher, which says the next event when the one before is confirmed, and the same one until then. */
const publishing = Effect.gen(function* () {
  const { publishStatus } = yield* BrokerClient
  const published = new Map(tasks.map((task) => [task, [] as string[]]))
  let isOver = false
  const publisher = Effect.fnUntraced(function* (task: string) {
    const said = published.get(task) ?? []
    while (!isOver) {
      const id = `e${said.length}`
      yield* Effect.eventually(Effect.tapError(publishStatus(event(task, id)), () => Effect.sleep("100 millis")))
      said.push(id)
      yield* Effect.sleep("10 millis")
    }
  })
  const running = yield* Effect.forkScoped(Effect.forEach(tasks, publisher, { concurrency: tasks.length }))
  const count = () => [...published.values()].reduce((sum, { length }) => sum + length, 0)
  return {
    goesOn: Effect.suspend(() => {
      const enough = count() + 200
      return eventually(Effect.sync(count), (now) => now >= enough, patience)
    }),
    end: Effect.suspend(() => {
      isOver = true
      return Effect.as(Fiber.join(running), published)
    })
  }
})

/** Redis holds of every task just these events, each once; in their order, where that is asked. */
const stored = Effect.fnUntraced(function* (expected: (task: string) => ReadonlyArray<string>, inOrder = true) {
  const store = yield* StatusStore
  const missing = Effect.map(
    Effect.forEach(tasks, (task) => store.history(task)),
    (histories) =>
      histories.flatMap(({ events }, n) => {
        const ids = new Set(events.map(({ eventId }) => eventId))
        return expected(tasks[n] ?? "").flatMap((id) => (ids.has(id) ? [] : [`${tasks[n]} ${id}`]))
      })
  )
  yield* eventually(Effect.retry(missing, Schedule.spaced("100 millis")), (ids) => ids.length === 0, patience)
  for (const task of tasks) {
    const { events } = yield* store.history(task)
    const wanted = expected(task)
    const ids = events.map(({ eventId }) => eventId)
    assert.deepStrictEqual(inOrder ? ids : ids.toSorted(), inOrder ? wanted : wanted.toSorted(), task)
    assert.deepStrictEqual(
      events.map(({ sequence }) => sequence),
      wanted.map((_, n) => n + 1)
    )
  }
})
