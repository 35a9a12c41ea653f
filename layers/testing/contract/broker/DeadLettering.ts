import assert from "node:assert/strict"
import { Effect } from "effect"
import { Broker, type Delivery } from "../../../../src/services/Broker.ts"
import { type BrokerLaw, brokerLaw } from "./BrokerLaw.ts"
import {
  atLeastOnce,
  confirmed,
  declared,
  drained,
  kinds,
  ofKind,
  reader,
  ready,
  send,
  sendAll,
  settleAll,
  texts
} from "./Messages.ts"

/** The lifetime of a message, in milliseconds. */
const brief = 60

/** The entries of `x-death` without their times, which differ in every run. */
const deaths = ({ properties }: Delivery): ReadonlyArray<object> => {
  const list = properties.headers?.["x-death"]
  return (Array.isArray(list) ? list : []).map((death: unknown) => {
    assert.ok(typeof death === "object" && death !== null && "time" in death && death.time instanceof Date)
    return { ...Object(death), time: "a time" }
  })
}

/** Laws of rejected, expired and dead-lettered messages. */
export const laws: ReadonlyArray<BrokerLaw> = [
  ...kinds.flatMap((kind) => [
    brokerLaw(
      `sends rejected messages to the dead-letter exchange with the reason: ${kind}`,
      Effect.gen(function* () {
        const dead = yield* declared(`dead-${kind}`)
        const queue = yield* declared(
          `rejects-${kind}`,
          ofKind(kind, { "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead })
        )
        confirmed(yield* send(queue, "x", { correlationId: "c", headers: { own: 1 }, priority: 3 }))
        const { take } = yield* reader(queue)
        yield* settleAll([yield* take], "reject")
        yield* ready(dead, 1)
        const [delivery] = yield* drained(dead)
        assert.ok(delivery !== undefined)
        if (delivery === undefined) return
        assert.deepStrictEqual(deaths(delivery), [
          { count: 1, reason: "rejected", queue, exchange: "", "routing-keys": [queue], time: "a time" }
        ])
        const { headers = {}, ...properties } = delivery.properties
        const { "x-death": _, ...others } = headers
        assert.deepStrictEqual(others, {
          own: 1,
          "x-first-death-reason": "rejected",
          "x-first-death-queue": queue,
          "x-first-death-exchange": ""
        })
        assert.deepStrictEqual(properties, { persistent: true, correlationId: "c", priority: 3 })
        assert.deepStrictEqual([delivery.exchange, delivery.routingKey, delivery.redelivered], ["", dead, false])
      })
    ),

    brokerLaw(
      `expires messages at the front, by the lifetime of the queue and by their own: ${kind}`,
      Effect.gen(function* () {
        const dead = yield* declared(`expired-${kind}`)
        const fields = { "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead }
        const timed = yield* declared(`timed-${kind}`, ofKind(kind, { "x-message-ttl": brief, ...fields }))
        const own = yield* declared(`own-${kind}`, ofKind(kind, fields))
        confirmed(yield* send(timed, "queue's"))
        yield* ready(dead, 1)
        confirmed(yield* send(own, "long", { expiration: 60_000 }))
        confirmed(yield* send(own, "behind", { expiration: 1 }))
        confirmed(yield* send(timed, "own", { expiration: 20, headers: { CC: ["nobody"] } }))
        yield* ready(dead, 2)
        yield* ready(own, 2)
        const [first, second] = yield* drained(dead)
        assert.ok(first !== undefined && second !== undefined)
        if (first === undefined || second === undefined) return
        const death = { count: 1, reason: "expired", queue: timed, exchange: "", time: "a time" }
        assert.deepStrictEqual(deaths(first), [{ ...death, "routing-keys": [timed] }])
        assert.deepStrictEqual(deaths(second), [
          { ...death, "routing-keys": [timed, "nobody"], "original-expiration": "20" }
        ])
        assert.strictEqual(second.properties.expiration, undefined)
        assert.strictEqual(second.properties.headers?.["CC"], undefined)
      })
    ),

    brokerLaw(
      `counts the rounds of a message through a retry queue: ${kind}`,
      Effect.gen(function* () {
        const { publish } = yield* Broker
        const source = yield* declared(`source-${kind}`, ofKind(kind))
        const retry = yield* declared(
          `retry-${kind}`,
          ofKind(kind, {
            "x-message-ttl": 10,
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": source
          })
        )
        const { take } = yield* reader(source)
        confirmed(yield* send(source, "x"))
        for (let round = 0; round < 3; round++) {
          const { content, properties, settle } = yield* take
          confirmed(
            yield* publish({ purpose: "retries", exchange: "", routingKey: retry, content, properties: properties })
          )
          settle("ack")
        }
        const delivery = yield* take
        assert.deepStrictEqual(deaths(delivery), [
          { count: 3, reason: "expired", queue: retry, exchange: "", "routing-keys": [retry], time: "a time" }
        ])
        assert.strictEqual(delivery.redelivered, false)
      })
    ),

    brokerLaw(
      `dead-letters at least once with the same headers and order as at most once: to ${kind}`,
      Effect.gen(function* () {
        const source = yield* declared(`back-${kind}`, ofKind(kind))
        const retry = yield* declared(
          `safe-${kind}`,
          ofKind("quorum", {
            "x-message-ttl": brief,
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": source,
            ...atLeastOnce
          })
        )
        const all = Array.from({ length: 50 }, (_, n) => String(n))
        yield* sendAll(retry, all)
        yield* ready(source, 50)
        yield* ready(retry, 0)
        const [first, ...others] = yield* drained(source)
        assert.ok(first !== undefined)
        if (first === undefined) return
        assert.deepStrictEqual(texts([first, ...others]), all)
        assert.deepStrictEqual(deaths(first), [
          { count: 1, reason: "expired", queue: retry, exchange: "", "routing-keys": [retry], time: "a time" }
        ])
        assert.deepStrictEqual(
          [first.exchange, first.routingKey, first.redelivered, first.properties.headers?.["x-first-death-queue"]],
          ["", source, false, retry]
        )
      })
    ),

    brokerLaw(
      `drops a message that would return to its own queue for ever: ${kind}`,
      Effect.gen(function* () {
        const queue = yield* declared(
          `round-${kind}`,
          ofKind(kind, { "x-message-ttl": 10, "x-dead-letter-exchange": "" })
        )
        confirmed(yield* send(queue, "x"))
        yield* ready(queue, 0)
      })
    ),

    brokerLaw(
      `delivers a message with a lifetime of 0 only to a consumer that waits: ${kind}`,
      Effect.gen(function* () {
        const queue = yield* declared(`instant-${kind}`, ofKind(kind))
        const { arrived, take } = yield* reader(queue, 1)
        confirmed(yield* send(queue, "caught", { expiration: 0 }))
        const caught = yield* take
        confirmed(yield* send(queue, "lost", { expiration: 0 }))
        yield* ready(queue, 0)
        caught.settle("ack")
        confirmed(yield* send(queue, "next"))
        assert.deepStrictEqual(texts([yield* take]), ["next"])
        assert.strictEqual(yield* arrived, 0)
      })
    )
  ]),

  brokerLaw(
    "dead-letters a message that exceeds the delivery limit: quorum",
    Effect.gen(function* () {
      const dead = yield* declared("limit-dead")
      const queue = yield* declared(
        "limited",
        ofKind("quorum", { "x-delivery-limit": 2, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead })
      )
      const { take } = yield* reader(queue, 1)
      confirmed(yield* send(queue, "x"))
      const seen: Array<unknown> = []
      for (let round = 0; round < 3; round++) {
        const delivery = yield* take
        seen.push([delivery.redelivered, delivery.properties.headers?.["x-delivery-count"]])
        delivery.settle("requeue")
      }
      assert.deepStrictEqual(seen, [
        [false, undefined],
        [true, 1],
        [true, 2]
      ])
      yield* ready(dead, 1)
      const [delivery] = yield* drained(dead)
      assert.strictEqual(delivery?.properties.headers?.["x-first-death-reason"], "delivery_limit")
      assert.strictEqual(delivery?.properties.headers?.["x-delivery-count"], undefined)
    })
  )
]
