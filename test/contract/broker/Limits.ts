import { assert } from "@effect/vitest"
import { Effect, Option } from "effect"
import { Broker } from "../../../src/services/Broker.ts"
import { eventually } from "../../Eventually.ts"
import type { Laws } from "./Laws.ts"
import { declared, drained, kinds, ofKind, reader, ready, send, sendAll, texts } from "./Messages.ts"

/** The lifetime of a queue that must not be over before a slow machine has used it, in milliseconds. */
const leased = 400

/** Asks seldom: on a classic queue every question counts as a use. */
const gone = Effect.fnUntraced(function* (queue: string) {
  const { inspect } = yield* Broker
  for (let asked = 0; asked < 15; asked++) {
    yield* Effect.sleep(leased * 1.5)
    if (Option.isNone(yield* inspect(queue))) return
  }
  assert.fail(`${queue} is still there`)
})

/** What a queue keeps when it is full, and for how long there is a queue. */
export const laws: Laws = (it) => {
  for (const kind of kinds) {
    it.effect(`keeps the newest when it is full: ${kind}`, () =>
      Effect.gen(function* () {
        const dead = yield* declared(`oldest-${kind}`)
        const queue = yield* declared(
          `newest-${kind}`,
          ofKind(kind, { "x-max-length": 2, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead })
        )
        const { take } = yield* reader(queue, 1)
        yield* sendAll(queue, ["1", "2", "3", "4", "5"])
        yield* ready(dead, 2)
        const buried = yield* drained(dead)
        assert.deepStrictEqual(texts(buried), ["2", "3"])
        assert.deepStrictEqual(
          buried.map(({ properties }) => properties.headers?.["x-first-death-reason"]),
          ["maxlen", "maxlen"]
        )
        assert.deepStrictEqual(texts([yield* take]), ["1"])
        yield* ready(queue, 2)
      }).pipe(Effect.scoped)
    )

    it.effect(`refuses publishes when it is full and told so: ${kind}`, () =>
      Effect.gen(function* () {
        const queue = yield* declared(
          `full-${kind}`,
          ofKind(kind, { "x-max-length": 2, "x-overflow": "reject-publish" })
        )
        const refused = yield* eventually(send(queue, "x"), ({ _tag }) => _tag !== "Confirmed")
        assert.deepInclude(refused, { _tag: "Refused", reason: "nacked" })
        const { messages } = Option.getOrThrow(yield* (yield* Broker).inspect(queue))
        assert.isAtLeast(messages, 2)
        assert.isAtMost(messages, kind === "classic" ? 2 : 4)
        yield* drained(queue)
        assert.deepStrictEqual(yield* eventually(send(queue, "y"), ({ _tag }) => _tag === "Confirmed"), {
          _tag: "Confirmed"
        })
      })
    )
  }

  it.effect("counts bytes", () =>
    Effect.gen(function* () {
      const queue = yield* declared("bytes", { "x-max-length-bytes": 10 })
      yield* sendAll(queue, ["aaaa", "bbbb", "cccc", "d"])
      assert.deepStrictEqual(texts(yield* drained(queue)), ["bbbb", "cccc", "d"])
      yield* sendAll(queue, ["a", "much too much for it"])
      yield* ready(queue, 0)
    })
  )

  it.effect("lets go of a queue that nobody uses, and of one whose last consumer left", () =>
    Effect.gen(function* () {
      const unused = yield* declared("unused", { "x-expires": leased })
      const left = yield* declared("auto", {}, { durable: false, autoDelete: true })
      yield* gone(unused)
      yield* Effect.scoped(reader(left))
      yield* gone(left)
    })
  )

  it.effect("keeps a queue that expires for as long as somebody consumes from it", () =>
    Effect.gen(function* () {
      const used = yield* declared("used", { "x-expires": leased })
      const { cancel } = yield* reader(used)
      yield* Effect.sleep(leased * 3)
      assert.isTrue(Option.isSome(yield* (yield* Broker).inspect(used)))
      yield* cancel
      yield* gone(used)
    }).pipe(Effect.scoped)
  )
}
