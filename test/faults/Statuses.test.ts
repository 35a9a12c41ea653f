import { assert, describe, it } from "@effect/vitest"
import { Clock, Deferred, Effect, Fiber, Layer, Option, Redacted, Schedule } from "effect"
import * as BrokerAmqp from "../../layers/BrokerAmqp.ts"
import * as RedisIoredis from "../../layers/RedisIoredis.ts"
import { BrokerClient } from "../../src/messaging/publish/BrokerClient.ts"
import * as RedisStatusStore from "../../src/status/store/RedisStatusStore.ts"
import { StatusStore } from "../../src/status/store/StatusStore.ts"
import { eventually } from "../Eventually.ts"
import * as RabbitmqProcess from "../RabbitmqProcess.ts"
import * as RedisProcess from "../RedisProcess.ts"
import * as TcpProxy from "../TcpProxy.ts"
import * as SeededRandom from "./SeededRandom.ts"
import * as StatusFollower from "./StatusFollower.ts"
import { judge, type Task } from "./StatusLedger.ts"
import * as StatusPlanes from "./StatusPlanes.ts"
import * as StatusReplicas from "./StatusReplicas.ts"
import * as TaskStory from "./TaskStory.ts"

/**
 * How long faults go on; by default until each has happened once, which keeps the suite short. Another seed is another
 * order of them. What broke once is run again by
 *
 * ```sh
 * SVC_TEST_FAULT_SECONDS=120 SVC_TEST_FAULT_SEED=7 npm test -- test/faults/Statuses.test.ts
 * ```
 */
const faultSeconds = Number(process.env["SVC_TEST_FAULT_SECONDS"] ?? 0)
const seed = Number(process.env["SVC_TEST_FAULT_SEED"] ?? 1)

const timeout = 240_000 + 2_000 * faultSeconds

const replicas = 2

/** Tasks that are told of at once. */
const lanes = 10

/** For work to go on after a fault, and for everything to end: it only has to be sooner than never. */
const patience = "60 seconds"

/** A stream that says nothing for so long behind the last event of all has forgotten to end. */
const lingersMs = 30_000

/** As many events as no task has, and fewer than most have. */
const [all, few] = [1_000, 12]

const isOdd = seed % 2 === 1
const runs: ReadonlyArray<{ readonly plane: StatusPlanes.Plane; readonly kept: number }> = [
  { plane: "stream", kept: isOdd ? few : all },
  { plane: isOdd ? "classic" : "quorum", kept: all }
]

describe.skipIf(!RabbitmqProcess.available || !RedisProcess.available)(
  "clients of event streams, and all that fails on the way to them",
  { timeout },
  () => {
    it.live.each(runs)("have what happened, in order and once, with $kept events kept of a $plane", ({ kept, plane }) =>
      Effect.gen(function* () {
        const random = SeededRandom.of(seed)
        const rabbitmq = yield* RabbitmqProcess.make()
        const redis = yield* RedisProcess.make("--appendonly", "yes", "--appendfsync", "always")
        const publishers = yield* TcpProxy.make({ host: "127.0.0.1", port: rabbitmq.port })
        const crashed: Array<string> = []
        const replica = StatusReplicas.make({ rabbitmq, redis }, { kept, plane }, crashed)
        const crew = yield* Effect.all([replica, ...Array.from({ length: replicas - 1 }, () => replica)])
        const allListen = Effect.forEach(crew, ({ listens }) => listens, { discard: true })
        yield* allListen

        yield* Effect.gen(function* () {
          const load = yield* happenings(
            [crew[0].port, ...crew.slice(1).map(({ port }) => port)],
            SeededRandom.of(seed + 1)
          )
          yield* load.goesOn

          const cut = (proxy: TcpProxy.TcpProxy) =>
            Effect.andThen(proxy.cut, Effect.delay(proxy.restore, 1_500 * random()))
          const hang = (proxy: TcpProxy.TcpProxy) =>
            Effect.andThen(proxy.freeze, Effect.delay(proxy.thaw, SeededRandom.chosen(random, [500, 4_000])))
          const chosen = Effect.sync(() => SeededRandom.chosen(random, crew))
          const faults = () => ({
            "replica killed": Effect.flatMap(chosen, ({ restart }) => restart("SIGKILL", 1_500 * random())),
            "replica stopped": Effect.flatMap(chosen, ({ restart }) => restart("SIGTERM", 500 * random())),
            "replica frozen": Effect.flatMap(chosen, ({ freeze }) => freeze(4_000 * random())),
            "streams cut": Effect.flatMap(chosen, ({ ways }) => cut(ways.streams)),
            "Redis killed": Effect.andThen(redis.kill, Effect.delay(redis.start, 1_500 * random())),
            "Redis frozen": Effect.andThen(redis.freeze, Effect.delay(redis.thaw, 4_000 * random())),
            "connections to Redis cut": Effect.flatMap(chosen, ({ ways }) => cut(ways.redis)),
            "Redis hangs": Effect.flatMap(chosen, ({ ways }) => hang(ways.redis)),
            "broker killed": Effect.andThen(rabbitmq.kill, rabbitmq.start),
            "connections to the broker cut": Effect.flatMap(chosen, ({ ways }) => cut(ways.rabbitmq)),
            "broker hangs": Effect.flatMap(chosen, ({ ways }) => hang(ways.rabbitmq)),
            "publishers cut": cut(publishers),
            "publishers hang": hang(publishers)
          })
          const startedAt = yield* Clock.currentTimeMillis
          const happened: Array<string> = []
          do {
            const order = [...SeededRandom.shuffled(random, Object.entries(faults()))]
            while (order.length > 0) {
              // some come together, and more of them where there is little time
              const now = order.splice(0, SeededRandom.chosen(random, faultSeconds > 0 ? [1, 1, 2] : [2, 3]))
              happened.push(now.map(([name]) => name).join(" + "))
              yield* Effect.all(
                now.map(([, fault]) => fault),
                { concurrency: "unbounded" }
              )
              yield* allListen
              yield* load.goesOn
              yield* Effect.sleep(500 * random())
            }
          } while ((yield* Clock.currentTimeMillis) < startedAt + faultSeconds * 1_000)

          const tasks = yield* load.end(plane)
          const verdict = judge({ tasks, isOrdered: plane === "stream", kept, isTerminal: TaskStory.isTerminal })
          const { confirmed, connections, lingeredMs, received, resets, unknown, wrong } = verdict
          yield* Effect.logInfo(
            `seed ${seed}, ${plane}, ${kept} kept, ${happened.length} faults: ${happened.join(", ")}. ` +
              `${tasks.length} tasks with ${confirmed} events confirmed and ${unknown} in doubt; ` +
              `${tasks.flatMap(({ followers }) => followers).length} clients received ${received} by ${connections} ` +
              `streams with ${resets} resets; ${Math.round(lingeredMs)} ms at most to the end of a stream; ` +
              `${wrong.length} are wrong`
          )
          assert.deepStrictEqual(wrong, [], story(tasks, wrong))
          assert.deepStrictEqual(crashed, [])
          assert.isBelow(lingeredMs, lingersMs)
          assert.isAbove(confirmed, 500)
          assert.isAbove(received, 1_000)
          assert.strictEqual(resets > 0, kept === few)
        }).pipe(Effect.scoped, Effect.provide(doors(publishers, redis, plane, kept)))
      }).pipe(Effect.scoped)
    )
  }
)

const doors = (
  { port }: TcpProxy.TcpProxy,
  { url }: { readonly url: Redacted.Redacted },
  plane: StatusPlanes.Plane,
  kept: number
) =>
  Layer.merge(
    Layer.provideMerge(
      BrokerClient.layer({ topology: StatusPlanes.topologyOf(plane) }),
      BrokerAmqp.layer({
        url: Redacted.make(`amqp://guest:guest@127.0.0.1:${port}`),
        name: "status-publisher",
        heartbeatSeconds: 1,
        connectWithin: "20 seconds",
        publishWithin: "5 seconds",
        closeWithin: "500 millis"
      })
    ),
    Layer.provide(
      RedisStatusStore.layer({ history_maxlen: kept }),
      RedisIoredis.layer({ url, prefix: StatusPlanes.prefix, deadline: "5 seconds" })
    )
  )

/** Task after task is told of, each with clients that follow it. */
const happenings = Effect.fnUntraced(function* (
  ports: readonly [number, ...ReadonlyArray<number>],
  random: SeededRandom.Random
) {
  const { initialize, inspectQueue, topology } = yield* BrokerClient
  const store = yield* StatusStore
  yield* initialize
  const tasks: Array<{
    readonly id: string
    readonly published: ReadonlyArray<TaskStory.Told>
    readonly followers: ReadonlyArray<ReturnType<typeof StatusFollower.make>>
  }> = []
  const finale: StatusFollower.Finale = { comes: Deferred.makeUnsafe(), newest: undefined }
  const followers: Array<Fiber.Fiber<void>> = []
  let isOn = true
  let heard = 0

  const one = Effect.gen(function* () {
    const own = SeededRandom.of(2 ** 32 * random())
    const story = TaskStory.of(`t${tasks.length}`, own)
    const task = {
      id: story.task,
      published: [] as TaskStory.Told[],
      followers: StatusFollower.habits(own).map((habits, n) =>
        StatusFollower.make({
          name: `client ${n}`,
          task: story.task,
          ports,
          habits,
          random: SeededRandom.of(2 ** 32 * random()),
          isTerminal: TaskStory.isTerminal,
          isLast: TaskStory.isLast,
          messageOf: (eventId) => TaskStory.messageOf(story, eventId),
          finale,
          heard: () => heard++
        })
      )
    }
    tasks.push(task)
    for (const { run } of task.followers) followers.push(yield* Effect.forkScoped(run))
    yield* TaskStory.tell(story, task.published, own, () => !isOn)
  })
  const running = yield* Effect.forkScoped(
    Effect.forEach(Array.from({ length: lanes }), () => Effect.repeat(one, { while: () => isOn }), {
      concurrency: "unbounded",
      discard: true
    })
  )

  const histories = Effect.forEach(tasks, ({ id }) => store.history(id), { concurrency: 50 }).pipe(
    Effect.retry(Schedule.spaced("100 millis"))
  )
  /** Everything that was published has come to the store, as far as it will. */
  const isStored = Effect.fnUntraced(function* (plane: StatusPlanes.Plane) {
    const found = yield* histories
    const isThere = found.every(({ events }, n) => {
      const ids = new Set(events.map(({ eventId }) => eventId))
      const published = tasks[n]?.published ?? []
      return (plane === "stream" ? published.slice(-1) : published).every(
        ({ id, isConfirmed }) => !isConfirmed || ids.has(id)
      )
    })
    if (!isThere || plane === "stream") return isThere
    const queue = yield* Effect.retry(inspectQueue(topology.status.queue), Schedule.spaced("100 millis"))
    return Option.isSome(queue) && queue.value.messages === 0
  })

  return {
    /** Events are published, stored and received. */
    goesOn: Effect.suspend(() => {
      const enough = heard + 300
      return eventually(
        Effect.sync(() => heard),
        (now) => now >= enough,
        patience
      )
    }),
    end: Effect.fnUntraced(function* (plane: StatusPlanes.Plane) {
      isOn = false
      yield* Effect.timeout(Fiber.join(running), patience)
      // what is not stored by then is for the judge to name
      yield* isStored(plane).pipe(
        Effect.repeat({ until: (stored) => stored, schedule: Schedule.spaced("100 millis") }),
        Effect.timeoutOption(patience)
      )
      const settled = yield* histories
      finale.newest = new Map(settled.map(({ events }, n) => [tasks[n]?.id ?? "", events.at(-1)?.eventId ?? ""]))
      yield* Deferred.succeed(finale.comes, undefined)
      yield* Effect.timeoutOption(Fiber.awaitAll(followers), patience)
      return tasks.map(({ followers, id, published }, n): Task => {
        const { events = [], newest = 0, oldest = 0 } = settled[n] ?? {}
        const ids = events.map(({ eventId }) => eventId)
        return { id, published, history: { ids, newest, oldest }, followers: followers.map(({ seen }) => seen()) }
      })
    })
  }
})

/** Of the first task with which something is wrong, everything that is known. */
const story = (tasks: ReadonlyArray<Task>, [first = ""]: ReadonlyArray<string>) =>
  JSON.stringify(tasks.find(({ id }) => first.startsWith(`${id}:`)))
