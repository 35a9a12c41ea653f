import { type ChildProcess, spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import * as BrokerAmqp from "../../layers/BrokerAmqp.ts"
import * as RedisIoredis from "../../layers/RedisIoredis.ts"
import { Broker } from "../../src/services/Broker.ts"
import { DeadLetterStore } from "../../src/status/dead-letters/DeadLetterStore.ts"
import { ReplayJobs } from "../../src/status/replay/ReplayJobs.ts"
import { end } from "../EndedProcess.ts"
import { eventually } from "../Eventually.ts"
import * as RabbitmqProcess from "../RabbitmqProcess.ts"
import * as RunningBroker from "../RunningBroker.ts"
import { drained, queue, start, stores } from "../status/DeadLetterServer.ts"
import { deadLetter } from "../status/DeadLetters.ts"
import * as TemporaryNames from "../TemporaryNames.ts"
import * as TemporaryPrefix from "../TemporaryPrefix.ts"
import * as SeededRandom from "./SeededRandom.ts"

describe.skipIf(!RabbitmqProcess.available || TemporaryPrefix.server === null)("a replay job and a broker", () => {
  it.live(
    "that is killed meanwhile: each message arrives once, or is named as unknown",
    () =>
      Effect.gen(function* () {
        const server = yield* RabbitmqProcess.make()
        const doors = Layer.merge(TemporaryPrefix.layer, BrokerAmqp.layer({ url: server.url, name: "svc-test" }))
        yield* Effect.gen(function* () {
          const { declare } = yield* Broker
          yield* declare({ exchanges: [], queues: [{ name: "source" }], bindings: [] })
          yield* RabbitmqProcess.writtenDown
          yield* recorded("source")
          const { get, post } = yield* start({}, { worker: { window: 64, perSecond: 1_000 } })
          const { body: job } = yield* post("/dlq/replays", { filter: { reason: "handler_error" } })
          const path = `/dlq/replays/${job.replay_id}`
          yield* eventually(get(path), ({ body }) => body.replayed >= 200)
          yield* server.kill
          const { body: alone, status } = yield* post("/dlq/messages/id-0/replay")
          assert.include([503, 504], status, JSON.stringify(alone))
          yield* eventually(get("/dlq/queues"), ({ body }) => body.queues[0]?.verdict === "no_answer")
          yield* server.start
          const { body: after } = yield* eventually(get(path), ({ body }) => body.state === "finished", "60 seconds")
          const inDoubt = yield* everyUnknown(get)
          yield* onceBut("source", inDoubt)
          assert.strictEqual(after.failed, 0)
          assert.strictEqual(after.replayed + after.unknown + after.skipped, total)
          const named = after.problems.filter(({ outcome }: { outcome: string }) => outcome === "unknown")
          assert.strictEqual(named.length, after.unknown)
          assert.isTrue(named.every(({ dlq_id }: { dlq_id: string }) => inDoubt.has(dlq_id)))
        }).pipe(Effect.scoped, Effect.provide(stores().pipe(Layer.provideMerge(doors))))
      }).pipe(Effect.scoped),
    300_000
  )
})

describe.skipIf(RunningBroker.server === null || TemporaryPrefix.server === null)("a replay job and its worker", () => {
  it.live(
    "whose process is killed again and again: each message arrives once, or is named as unknown",
    () =>
      Effect.gen(function* () {
        const prefix = yield* TemporaryPrefix.make
        const doors = Layer.provideMerge(
          TemporaryNames.layer,
          Layer.merge(RunningBroker.layer(), RedisIoredis.layer({ url: TemporaryPrefix.url, prefix }))
        )
        yield* Effect.gen(function* () {
          const random = SeededRandom.of(11)
          const source = yield* queue("source")
          const ids = yield* recorded(source)
          const jobs = yield* ReplayJobs
          const { job } = yield* jobs.create({ selection: { ids }, force: false })
          const now = Effect.map(jobs.get(job.replay_id), (job) => ({
            state: job?.state,
            remaining: job?.remaining ?? 0
          }))
          const worker = yield* killable(prefix)
          let kills = 0
          for (;;) {
            const before = yield* now
            const { state } = yield* eventually(
              now,
              ({ remaining, state }) => state === "finished" || remaining < before.remaining,
              "30 seconds"
            )
            if (state === "finished") break
            yield* Effect.sleep(SeededRandom.between(random, 0, 100))
            yield* worker.kill
            yield* worker.start
            kills++
          }
          assert.isAtLeast(kills, 3)
          const problems = yield* jobs.problems(job.replay_id)
          assert.isTrue(problems.every(({ outcome }) => outcome === "unknown"))
          yield* onceBut(source, new Set(problems.map(({ dlq_id }) => dlq_id)))
          const ended = yield* jobs.get(job.replay_id)
          assert.deepStrictEqual(
            [ended?.replayed, ended?.unknown, ended?.skipped, ended?.failed, ended?.remaining],
            [total - problems.length, problems.length, 0, 0, 0]
          )
          yield* Effect.logInfo(`killed ${kills} times, unknown ${problems.length}`)
        }).pipe(Effect.scoped, Effect.provide(stores().pipe(Layer.provideMerge(doors))))
      }).pipe(Effect.scoped),
    300_000
  )
})

const total = 1_000

const recorded = Effect.fnUntraced(function* (source: string) {
  const store = yield* DeadLetterStore
  const ids = Array.from({ length: total }, (_, n) => `id-${n}`)
  yield* Effect.forEach(ids.keys(), (n) => store.record(deadLetter(n, { source_queue_name: source })), {
    concurrency: 64
  })
  return ids
})

/** Every message has arrived once; those in doubt at most once. */
const onceBut = Effect.fnUntraced(function* (source: string, inDoubt: ReadonlySet<string>) {
  const missing = new Set(Array.from({ length: total }, (_, n) => `id-${n}`))
  const twice: Array<string> = []
  for (const { content } of yield* drained(source)) {
    const id = `id-${JSON.parse(Buffer.from(content).toString()).n}`
    if (!missing.delete(id)) twice.push(id)
  }
  assert.deepStrictEqual({ missing: [...missing].filter((id) => !inDoubt.has(id)), twice }, { missing: [], twice: [] })
})

/** A process that works on replay jobs. */
const killable = Effect.fnUntraced(function* (prefix: string) {
  const program = fileURLToPath(new URL("FaultReplayer.ts", import.meta.url))
  const args = [program, Redacted.value(RunningBroker.url), Redacted.value(TemporaryPrefix.url), prefix]
  let running: ChildProcess | undefined
  const start = Effect.sync(() => {
    running = spawn(process.execPath, args, { stdio: "ignore" })
  })
  const kill = Effect.suspend(() => end(running, "SIGKILL"))
  yield* Effect.acquireRelease(start, () => kill)
  return { kill, start }
})

const everyUnknown = Effect.fnUntraced(function* (get: Effect.Success<ReturnType<typeof start>>["get"]) {
  const { body } = yield* get("/dlq/messages?state=replay_unknown&limit=200")
  return new Set<string>(body.items.map(({ dlq_id }: { dlq_id: string }) => dlq_id))
})
