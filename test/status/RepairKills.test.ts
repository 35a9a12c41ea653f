import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Logger, Redacted, type Scope } from "effect"
import { BrokerClient } from "../../src/messaging/publish/BrokerClient.ts"
import { Broker } from "../../src/services/Broker.ts"
import { Redis } from "../../src/services/Redis.ts"
import { DeadLetterStore } from "../../src/status/dead-letters/DeadLetterStore.ts"
import * as RedisDLQStore from "../../src/status/dead-letters/RedisDLQStore.ts"
import { end } from "../EndedProcess.ts"
import { eventually } from "../Eventually.ts"
import * as RunningBroker from "../RunningBroker.ts"
import * as TemporaryNames from "../TemporaryNames.ts"
import * as TemporaryPrefix from "../TemporaryPrefix.ts"
import type { JsonAnswer } from "./JsonAnswer.ts"
import { topologyOf, workerOf } from "./RepairedTasks.ts"
import { names } from "./RepairedWorld.ts"
import type { Settings } from "./RepairingServer.ts"

const isReal = TemporaryPrefix.server !== null && RunningBroker.server !== null

const doors = Layer.provideMerge(
  TemporaryNames.layer,
  Layer.mergeAll(TemporaryPrefix.layer, RunningBroker.layer(), Logger.layer([]))
)

/** A server that is killed again and again: each one repairs what the one before left, and dies at the next step. */
class Servers {
  readonly #start: () => ChildProcess
  #child: ChildProcess | undefined
  #url = ""

  constructor(start: () => ChildProcess) {
    this.#start = start
  }

  readonly next = Effect.gen({ self: this }, function* () {
    yield* this.stop
    const child = this.#start()
    this.#child = child
    const port = Effect.promise(() => once(child.stdout ?? child, "data"))
    const exit = Effect.promise(() => once(child, "exit"))
    this.#url = `http://127.0.0.1:${Number(yield* Effect.raceFirst(port, exit))}`
  })

  readonly stop = Effect.suspend(() => (this.#child === undefined ? Effect.void : end(this.#child, "SIGKILL")))

  /** Fails with an answer of status 0 if the server is gone. */
  call = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    Effect.promise(async (): Promise<JsonAnswer> => {
      try {
        const answer = await fetch(this.#url + path, {
          method,
          headers,
          ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) })
        })
        const text = await answer.text()
        return { status: answer.status, body: text === "" ? undefined : JSON.parse(text) }
      } catch {
        return { status: 0, body: undefined }
      }
    })

  get = (path: string) => this.call("GET", path)
  post = (path: string, body?: unknown) => this.call("POST", path, body)

  /** Does something that kills the server at a step, and starts the next server. */
  killed = <A, E, R>(step: string, work: Effect.Effect<A, E, R>) =>
    Effect.gen({ self: this }, function* () {
      yield* this.post("/arm", step)
      yield* work
      yield* eventually(
        Effect.sync(() => this.#child?.signalCode),
        (signal) => signal === "SIGKILL"
      )
      yield* this.next
    })
}

const world = Effect.gen(function* () {
  const given = yield* names
  const redis = yield* Redis
  const [handled, mends] = [[] as string[], new Set<string>()]
  const store = yield* DeadLetterStore
  const client = yield* BrokerClient
  yield* client.initialize
  yield* Layer.build(workerOf(handled, mends))
  const settings: Settings = {
    names: given,
    rabbitmq: Redacted.value(RunningBroker.url),
    redis: Redacted.value(TemporaryPrefix.url),
    prefix: redis.key("")
  }
  const program = new URL("./RepairingServer.ts", import.meta.url).pathname
  const servers = new Servers(() =>
    spawn(process.execPath, [program, JSON.stringify(settings)], { stdio: ["ignore", "pipe", "inherit"] })
  )
  yield* Effect.addFinalizer(() => servers.stop)
  yield* servers.next
  const letterOf = (task_id: string) =>
    Effect.map(
      eventually(store.list({ task_id }, { limit: 50 }), ({ items }) => items.length > 0),
      ({ items }) => items[0]?.dlq_id ?? ""
    )
  const letters = `${given.queue}.dlq`
  return {
    servers,
    store,
    mends,
    letters,
    fail: (task_id: string) =>
      Effect.andThen(client.publishTask({ task_id, payload: { bad: "RangeError" } }), letterOf(task_id)),
    times: (task: string) => handled.filter((one) => one === task).length,
    queued: Effect.flatMap(Broker, ({ inspect }) =>
      Effect.map(inspect(letters), (found) => (found._tag === "Some" ? found.value.messages : -1))
    )
  }
})

const provided = <A, E>(
  test: Effect.Effect<
    A,
    E,
    Broker | Redis | TemporaryNames.TemporaryNames | Scope.Scope | DeadLetterStore | BrokerClient
  >
) =>
  Effect.flatMap(names, (given) =>
    test.pipe(Effect.provide(Layer.merge(RedisDLQStore.layer(), BrokerClient.layer({ topology: topologyOf(given) }))))
  ).pipe(Effect.scoped, Effect.provide(doors))

/** Before a step is after the one before it. */
const afterReplaySteps = ["dlq-claim", "dlq-begin", "publish", "dlq-settle"].map((step) => `after ${step}`)

describe.skipIf(!isReal)("a status server that is killed", () => {
  it.live(
    "at each step of an edit: the letter is as it was, or replaced; its message is published once, or unknown",
    () =>
      Effect.gen(function* () {
        const { fail, servers, times } = yield* world
        for (const [n, step] of ["before dlq-replace", "after dlq-replace", ...afterReplaySteps].entries()) {
          const task = `t${n}`
          const letter = yield* fail(task)
          const edit = servers.post(`/dlq/messages/${letter}/edits`, { payload: { n } })
          yield* servers.killed(step, edit)
          const { body: old } = yield* servers.get(`/dlq/messages/${letter}`)
          if (step === "before dlq-replace") {
            assert.strictEqual(old.state, "dead_lettered", step)
            assert.strictEqual((yield* edit).status, 201, step)
          } else {
            assert.strictEqual(old.state, "replaced", step)
            assert.strictEqual((yield* edit).status, 409, step)
            const edited = `/dlq/messages/${old.replaced_by}`
            const isUnknown = /dlq-begin|publish/.test(step)
            const expected = isUnknown ? "replay_unknown" : step === "after dlq-settle" ? "replayed" : "dead_lettered"
            assert.strictEqual(old.replacement.state, expected, step)
            // A claim of the process that is gone is over after a second.
            if (expected === "dead_lettered") {
              yield* eventually(servers.post(`${edited}/replay`), ({ status }) => status === 200)
            }
            if (isUnknown) {
              const refused = yield* eventually(
                servers.post(`${edited}/replay`),
                ({ body }) => !/in progress/.test(body.detail)
              )
              assert.match(refused.body.detail, /unknown whether the message was published/, step)
            }
          }
          const isPublished = !/dlq-begin/.test(step)
          if (isPublished)
            yield* eventually(
              Effect.sync(() => times(task)),
              (times) => times === 1
            )
          assert.strictEqual(times(task), isPublished ? 1 : 0, step)
        }
      }).pipe(provided),
    180_000
  )

  it.live(
    "at each step of an archive and its undo: the message leaves its queue and the index, and can be replayed",
    () =>
      Effect.gen(function* () {
        const { fail, letters, mends, queued, servers, store, times } = yield* world
        const copySteps = ["after get", "before dlq-copies-gone", "after dlq-copies-gone"]
        const archiveSteps = ["before dlq-archive", "after dlq-archive", ...copySteps]
        for (const [n, step] of archiveSteps.entries()) {
          const task = `a${n}`
          const letter = yield* fail(task)
          const archive = servers.post(`/dlq/messages/${letter}/archive`, { reason: "a test" })
          yield* servers.killed(step, archive)
          const { body } = yield* servers.get(`/dlq/messages/${letter}`)
          assert.strictEqual(body.state, step === "before dlq-archive" ? "dead_lettered" : "archived", step)
          if (body.state !== "archived") assert.strictEqual((yield* archive).status, 200, step)
          yield* eventually(queued, (messages) => messages === 0, "15 seconds")
          yield* eventually(
            servers.post("/dlq/queues/index", { queue_name: letters }),
            ({ body }) => body.indexed === 0 && body.messages === 0
          )
          assert.deepStrictEqual((yield* store.list({ state: "dead_lettered" }, { limit: 10 })).items, [], step)
          const undo = servers.post(`/dlq/messages/${letter}/unarchive`)
          if (n === 0) yield* servers.killed("before dlq-unarchive", undo)
          if (n === 1) yield* servers.killed("after dlq-unarchive", undo)
          assert.strictEqual((yield* undo).status, n === 1 ? 409 : 200, step)
          mends.add(task)
          assert.strictEqual((yield* servers.post(`/dlq/messages/${letter}/replay`)).status, 200, step)
          yield* eventually(
            Effect.sync(() => times(task)),
            (times) => times === 1
          )
        }
      }).pipe(provided),
    180_000
  )

  it.live(
    "at each step of a staged replay: another one goes on, and each message is published once or named as unknown",
    () =>
      Effect.gen(function* () {
        const { fail, mends, servers, times } = yield* world
        const ownSteps = ["dlq-replay-create", "dlq-replay-advance", "dlq-replay-step", "dlq-outcome"]
        for (const [n, step] of [...afterReplaySteps, ...ownSteps.map((step) => `after ${step}`)].entries()) {
          const tasks = Array.from({ length: 3 }, (_, i) => `j${n}-${i}`)
          const ids = yield* Effect.forEach(tasks, fail, { concurrency: 3 })
          for (const task of tasks) mends.add(task)
          const start = servers.call(
            "POST",
            "/dlq/replays",
            { ids, plan: { steps: [1], wait_seconds: 20 } },
            { "idempotency-key": step }
          )
          yield* servers.killed(step, start)
          const { body: job } = yield* start
          const over = yield* eventually(
            servers.get(`/dlq/replays/${job.replay_id}`),
            ({ body }) => body.state === "finished",
            "25 seconds"
          )
          const { body } = over
          const unknown = body.problems.map(({ dlq_id }: { readonly dlq_id: string }) => dlq_id)
          assert.strictEqual(body.replayed + body.unknown, 3, step)
          assert.lengthOf(unknown, body.unknown, step)
          assert.isAtMost(body.unknown, /dlq-begin|publish/.test(step) ? 2 : 0, step)
          for (const [i, task] of tasks.entries()) {
            if (unknown.includes(ids[i])) assert.isAtMost(times(task), 1, step)
            else
              yield* eventually(
                Effect.sync(() => times(task)),
                (times) => times === 1
              )
          }
          const [first, rest] = body.steps
          assert.strictEqual(first.replayed + first.not_replayed, 1, step)
          assert.strictEqual(rest.replayed + rest.not_replayed, 2, step)
          assert.deepStrictEqual([first.open, rest.open], [0, 0], step)
          assert.strictEqual(first.handled + rest.handled, body.replayed, step)
        }
      }).pipe(provided),
    300_000
  )

  it.live(
    "around the pause and the resume of a staged replay: it is in one of the two states, and each message is published once",
    () =>
      Effect.gen(function* () {
        const { fail, mends, servers, times } = yield* world
        const steps = ["pause", "resume"].flatMap((verb) => [`before dlq-replay-${verb}`, `after dlq-replay-${verb}`])
        for (const [n, step] of steps.entries()) {
          const tasks = Array.from({ length: 3 }, (_, i) => `p${n}-${i}`)
          const ids = yield* Effect.forEach(tasks, fail, { concurrency: 3 })
          for (const task of tasks) mends.add(task)
          const { body: job } = yield* servers.post("/dlq/replays", { ids, plan: { steps: [1], rate: 0.5 } })
          const path = `/dlq/replays/${job.replay_id}`
          const become = (state: string) =>
            eventually(servers.get(path), ({ body }) => body.state === state, "25 seconds")
          yield* eventually(servers.get(path), ({ body }) => body.replayed === 1)

          const pause = servers.post(`${path}/pause`, { reason: step })
          if (step.endsWith("pause")) yield* servers.killed(step, pause)
          if (step !== "after dlq-replay-pause") assert.strictEqual((yield* pause).status, 200, step)
          const { body: paused } = yield* become("paused")
          assert.strictEqual(paused.paused.reason, step)
          assert.isBelow(paused.replayed, 3, step)

          const resume = servers.post(`${path}/resume`)
          if (step.endsWith("resume")) yield* servers.killed(step, resume)
          if (step !== "after dlq-replay-resume") assert.strictEqual((yield* resume).status, 200, step)
          const { body: over } = yield* become("finished")
          assert.deepStrictEqual([over.replayed, over.unknown], [3, 0], step)
          for (const task of tasks) {
            yield* eventually(
              Effect.sync(() => times(task)),
              (times) => times === 1
            )
          }
        }
      }).pipe(provided),
    180_000
  )
})
