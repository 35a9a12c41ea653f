import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Option, Redacted } from "effect"
import { FetchHttpClient, HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { TestClock } from "effect/testing"
import * as ReplayCommands from "../../layers/commands/ReplayDeadLetters.ts"
import { Broker } from "../../src/services/Broker.ts"
import { DeadLetterStore } from "../../src/status/dead-letters/DeadLetterStore.ts"
import * as ReplayClient from "../../src/status/replay/ReplayClient.ts"
import * as LocalPort from "../LocalPort.ts"
import * as RunningGateway from "../RunningGateway.ts"
import { drained, inMemory, queue, start, stores } from "./DeadLetterServer.ts"
import { deadLetter } from "./DeadLetters.ts"

const provided = <A, E, R>(test: Effect.Effect<A, E, R>) =>
  test.pipe(Effect.scoped, Effect.provide(stores().pipe(Layer.provideMerge(inMemory))))

/** Runs the program to its end: its exit code, and what it said. */
const command = (
  args: ReadonlyArray<string>,
  environment: Readonly<Record<string, string>> = {},
  words: ReadonlyArray<string> = ["replay"]
) =>
  Effect.promise(async () => {
    const { exited, output } = RunningGateway.command([...words, ...args], environment)
    return { code: await exited, output: output().trim() }
  })

describe("the command that replays dead letters", () => {
  it.live("replays what it names, says how far it is, and tells by its exit code whether anything is left", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      const source = yield* queue("source")
      const { post, url } = yield* start({}, { worker: { window: 10, perSecond: 200 } })
      for (let n = 0; n < 100; n++) yield* store.record(deadLetter(n, { source_queue_name: source }))
      yield* store.record(deadLetter("gone", { source_queue_name: `${source}-gone`, reason: "stage_timeout" }))

      const whole = yield* command(["--reason", "handler_error", "--exception-type", "RangeError"], {
        SVC_STATUS_URL: url
      })
      assert.strictEqual(whole.code, 0, whole.output)
      assert.match(whole.output, /^\d+\/100 done: \d+ replayed$/m)
      assert.match(whole.output, /Done: 100 replayed of 100\.$/)
      assert.lengthOf(yield* drained(source), 100)

      const failed = yield* command(["--url", url, "--id", "id-gone", "--id", "id-1"])
      assert.strictEqual(failed.code, 1, failed.output)
      assert.match(failed.output, /failed id-gone: The queue .*gone does not exist any more/)
      assert.match(failed.output, /Of 2 records, 1 failed and 0 have an unknown outcome/)

      const forced = yield* command(["--url", url, "--id", "id-1", "--force"])
      assert.strictEqual(forced.code, 0, forced.output)

      const { body: job } = yield* post("/dlq/replays", { ids: ["id-2"] })
      const followed = yield* command(["--url", url, "--job", job.replay_id])
      assert.deepStrictEqual([followed.code, /Done: 0 replayed, 1 skipped of 1\./.test(followed.output)], [0, true])
    }).pipe(provided)
  )

  it.live("refuses what says nothing or too much, and shows what the server refuses", () =>
    Effect.gen(function* () {
      const { url } = yield* start()
      const nothing = yield* command(["--url", url])
      assert.deepStrictEqual([nothing.code, /--id, or a filter/.test(nothing.output)], [1, true], nothing.output)
      const refused = yield* command(["--url", url, "--state", "replayed"])
      assert.deepStrictEqual([refused.code, /422: .*filter\.state/.test(refused.output)], [1, true], refused.output)
      const unnamed = yield* command(["--id", "x"])
      assert.deepStrictEqual(
        [unnamed.code, unnamed.output],
        [1, "Set --url or SVC_STATUS_URL to a process that serves dead letters, such as --url http://127.0.0.1:8082."]
      )
      const nowhere = yield* command(["--url", `${url}/nowhere`, "--id", "x"])
      assert.strictEqual(nowhere.code, 1, nowhere.output)
    }).pipe(provided)
  )

  it.effect("names the address that nobody answers at, and why", () =>
    Effect.gen(function* () {
      const port = yield* LocalPort.free
      const asked = yield* Effect.forkScoped(
        Effect.flip(
          ReplayClient.get({ url: new URL(`http://127.0.0.1:${port}`), token: Option.none() }, "x").pipe(
            Effect.provide(FetchHttpClient.layer)
          )
        )
      )
      // it tries again for a minute
      while (asked.pollUnsafe() === undefined) {
        yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 10)))
        yield* TestClock.adjust("500 millis")
      }
      const { message } = yield* Fiber.join(asked)
      assert.strictEqual(
        message,
        `http://127.0.0.1:${port}/dlq/replays/x cannot be reached: connect ECONNREFUSED 127.0.0.1:${port}`
      )
    }).pipe(Effect.scoped)
  )

  it.live("draws a bar over itself on a terminal, as wide as that is", () =>
    Effect.gen(function* () {
      const store = yield* DeadLetterStore
      const source = yield* queue("source")
      const { url } = yield* start({}, { worker: { window: 2, perSecond: 40 } })
      for (let n = 0; n < 30; n++) yield* store.record(deadLetter(n, { source_queue_name: source }))
      const written: Array<string> = []
      yield* ReplayCommands.replay(
        {
          url: Option.some(new URL(url)),
          token: Option.none(),
          job: Option.none(),
          ids: [],
          filter: { reason: "handler_error" },
          force: false
        },
        { terminal: true, columns: 70, write: (text) => written.push(text) }
      )
      assert.isAbove(written.length, 2)
      const drawn = written.slice(0, -1)
      for (const text of drawn) {
        assert.match(text, /^\r\[█*░*\] \d+% \d+\/30 {2}/)
        assert.isBelow(text.length, 70 + 4)
      }
      assert.match(drawn.at(-1) ?? "", /100% 30\/30 {2}30 replayed/)
    }).pipe(provided)
  )

  it.live("gives the token of the process", () =>
    Effect.gen(function* () {
      const guarded = HttpRouter.middleware(
        (answer) =>
          Effect.gen(function* () {
            const { headers } = yield* HttpServerRequest.HttpServerRequest
            return headers["authorization"] === "Bearer secret"
              ? yield* answer
              : HttpServerResponse.jsonUnsafe({ detail: "Who are you?" }, { status: 401 })
          }),
        { global: true }
      )
      const { url } = yield* start({}, { around: guarded })
      const wish = { url: Option.some(new URL(url)), job: Option.none(), ids: ["id-none"], filter: {}, force: false }
      const screen = { terminal: false, columns: 80, write: () => {} }
      const refused = yield* Effect.flip(ReplayCommands.replay({ ...wish, token: Option.none() }, screen))
      assert.match(refused.message, /401: Who are you/)
      yield* ReplayCommands.replay({ ...wish, token: Option.some(Redacted.make("secret")) }, screen)
    }).pipe(provided)
  )
})

describe("the commands on the messages of a dead-letter queue", () => {
  it.live("index them again, and remove what was replayed", () =>
    Effect.gen(function* () {
      const [source, letters] = [yield* queue("source"), yield* queue("source.dlq")]
      const broker = yield* Broker
      for (const at of ["2026-11-23T10:00:00Z", "2026-11-23T10:00:01Z"]) {
        const headers = {
          "x-svc-source-queue": source,
          "x-svc-failure-reason": "handler_error",
          "x-svc-dead-lettered-at": at
        }
        const content = Buffer.from('{"task_id":"t"}')
        yield* broker.publish({
          purpose: "retries",
          exchange: "",
          routingKey: letters,
          content,
          properties: { headers }
        })
      }
      const { get, post, url } = yield* start()
      const run = (name: string, ...more: ReadonlyArray<string>) =>
        command(["--url", url, "--queue", letters, ...more], {}, ["dead-letters", name])
      const indexed = yield* run("index")
      assert.deepStrictEqual(indexed, {
        code: 0,
        output: `${letters}: 2 messages examined; 2 indexed, 0 already known.`
      })
      const { items } = (yield* get("/dlq/messages?task_id=t")).body
      yield* post(`/dlq/messages/${items[0].dlq_id}/replay`)
      const removed = yield* run("remove-replayed")
      assert.deepStrictEqual(removed, {
        code: 0,
        output: `${letters}: 2 messages examined; 1 removed as replayed; 1 kept.`
      })
      const refused = yield* command(["--url", url, "--queue", source], {}, ["dead-letters", "index"])
      assert.deepStrictEqual(
        [refused.code, /422: .* is not known as a dead-letter queue/.test(refused.output)],
        [1, true]
      )
    }).pipe(provided)
  )
})
