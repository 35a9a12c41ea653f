import assert from "node:assert/strict"
import { Effect, Option } from "effect"
import { Broker } from "../../../../src/services/Broker.ts"
import { includes } from "../law/Assert.ts"
import { eventually } from "../law/Eventually.ts"
import { type BrokerLaw, brokerLaw } from "./BrokerLaw.ts"
import { declared, drained, kinds, ofKind, reader, ready, send, sendAll, texts } from "./Messages.ts"

/** The lifetime of a queue, in milliseconds. A slow machine must use the queue before it expires. */
const leased = 400

/** Waits until a queue does not exist. It seldom asks, because asking uses a classic queue and keeps it. */
const gone = Effect.fnUntraced(function* (queue: string) {
  const { inspect } = yield* Broker
  for (let asked = 0; asked < 15; asked++) {
    yield* Effect.sleep(leased * 1.5)
    if (Option.isNone(yield* inspect(queue))) return
  }
  assert.fail(`${queue} still exists`)
})

/** Laws of full queues and of queues that expire. */
export const laws: ReadonlyArray<BrokerLaw> = [
  ...kinds.flatMap((kind) => [
    brokerLaw(
      `keeps the newest messages of a full queue: ${kind}`,
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
      })
    ),

    brokerLaw(
      `refuses publishes to a full queue with reject-publish: ${kind}`,
      Effect.gen(function* () {
        const queue = yield* declared(
          `full-${kind}`,
          ofKind(kind, { "x-max-length": 2, "x-overflow": "reject-publish" })
        )
        const refused = yield* eventually(send(queue, "x"), ({ _tag }) => _tag !== "Confirmed")
        includes(refused, { _tag: "Refused", reason: "nacked" })
        const { messages } = Option.getOrThrow(yield* (yield* Broker).inspect(queue))
        assert.ok(messages >= 2)
        assert.ok(messages <= (kind === "classic" ? 2 : 4))
        yield* drained(queue)
        assert.deepStrictEqual(yield* eventually(send(queue, "y"), ({ _tag }) => _tag === "Confirmed"), {
          _tag: "Confirmed"
        })
      })
    )
  ]),

  brokerLaw(
    "limits a queue by bytes",
    Effect.gen(function* () {
      const queue = yield* declared("bytes", { "x-max-length-bytes": 10 })
      yield* sendAll(queue, ["aaaa", "bbbb", "cccc", "d"])
      assert.deepStrictEqual(texts(yield* drained(queue)), ["bbbb", "cccc", "d"])
      yield* sendAll(queue, ["a", "much too much for it"])
      yield* ready(queue, 0)
    })
  ),

  brokerLaw(
    "deletes a queue that expires, and one whose last consumer has gone",
    Effect.gen(function* () {
      const unused = yield* declared("unused", { "x-expires": leased })
      const left = yield* declared("auto", {}, { durable: false, autoDelete: true })
      yield* gone(unused)
      yield* Effect.scoped(reader(left))
      yield* gone(left)
    })
  ),

  brokerLaw(
    "keeps a queue that expires while it has a consumer",
    Effect.gen(function* () {
      const used = yield* declared("used", { "x-expires": leased })
      const { cancel } = yield* reader(used)
      yield* Effect.sleep(leased * 3)
      assert.ok(Option.isSome(yield* (yield* Broker).inspect(used)))
      yield* cancel
      yield* gone(used)
    })
  )
]
