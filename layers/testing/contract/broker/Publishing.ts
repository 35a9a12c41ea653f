import assert from "node:assert/strict"
import { Effect } from "effect"
import { Broker, type Field, type Fields, type Properties, type Publication } from "../../../../src/services/Broker.ts"
import { includes } from "../law/Assert.ts"
import { type BrokerLaw, brokerLaw } from "./BrokerLaw.ts"
import { confirmed, declared, drained, reader, ready, send, text } from "./Messages.ts"
import * as Temporary from "./TemporaryNames.ts"

/** Returns tables that nest this many levels deep. */
const nested = (levels: number): Field => Array.from({ length: levels }).reduce<Field>((inner) => ({ inner }), 1)

const cyclic = (): Field => {
  const round: Array<Field> = []
  round.push(round, round)
  return round
}

/** Publications that AMQP cannot carry, and the part at fault. */
const uncarriable: ReadonlyArray<readonly [field: string, Omit<Partial<Publication>, "purpose" | "content">]> = [
  ["routingKey", { routingKey: "half\ud800" }],
  ["exchange", { exchange: "\udfff" }],
  ["correlationId", { properties: { correlationId: "\ud83d" } }],
  ["appId", { properties: { appId: `${"é".repeat(127)}xy` } }],
  ["timestamp", { properties: { timestamp: new Date(Number.NaN) } }],
  ["timestamp", { properties: { timestamp: new Date(-1_000) } }],
  ["header CC", { properties: { headers: { CC: "no list" } } }],
  ["header pad", { properties: { headers: { first: 1, pad: "p".repeat(65_536 - 20) } } }],
  ["header pad", { properties: { headers: { pad: Array.from({ length: 13_105 }, () => 2 ** 31) } } }],
  ["header nan", { properties: { headers: { good: 1, nan: Number.NaN } } }],
  ["header list", { properties: { headers: { list: [1, [Number.POSITIVE_INFINITY]] } } }],
  ["header wide", { properties: { headers: { wide: 2n ** 63n } } }],
  ["header time", { properties: { headers: { time: new Date(Number.NaN) } } }],
  ["header old", { properties: { headers: { old: new Date(-1_000) } } }],
  ["header n", { properties: { headers: { ["n".repeat(256)]: 1 } } }],
  ["header table", { properties: { headers: { table: { ["n".repeat(256)]: 1 } } } }],
  ["header __proto__", { properties: { headers: JSON.parse('{"__proto__":1}') } }],
  ["header none", { properties: { headers: Object.assign(JSON.parse("{}"), { none: undefined }) } }],
  ["header round", { properties: { headers: { round: cyclic() } } }],
  ["header deep", { properties: { headers: { deep: nested(101) } } }]
]

/** Laws of routing, of message properties and of publish outcomes. */
export const laws: ReadonlyArray<BrokerLaw> = [
  brokerLaw(
    "routes by every kind of exchange, with one copy for each queue",
    Effect.gen(function* () {
      const broker = yield* Broker
      const names = yield* Temporary.TemporaryNames
      const bound = Effect.fnUntraced(function* (
        kind: "direct" | "topic" | "fanout" | "headers",
        keys: ReadonlyArray<readonly [key: string, fields?: Fields]>,
        published: ReadonlyArray<readonly [key: string, headers?: Fields]>
      ) {
        const [exchange, queue] = [names.exchange(kind), names.queue(`routed-${kind}`)]
        yield* broker.declare({
          exchanges: [{ name: exchange, kind }],
          queues: [{ name: queue }],
          bindings: keys.map(([routingKey, fields = {}]) => ({ exchange, queue, routingKey, arguments: fields }))
        })
        const outcomes = yield* Effect.forEach(published, ([routingKey, headers = {}]) =>
          broker.publish({
            purpose: "tasks",
            exchange,
            routingKey,
            content: Buffer.from(routingKey),
            properties: { headers }
          })
        )
        const arrived = yield* drained(queue)
        assert.ok(arrived.every((delivery) => delivery.exchange === exchange))
        assert.deepStrictEqual(
          arrived.map(({ routingKey }) => routingKey),
          published.flatMap(([key], index) => (outcomes[index]?._tag === "Confirmed" ? [key] : []))
        )
        return outcomes.map(({ _tag }) => (_tag === "Confirmed" ? "+" : _tag === "Returned" ? "-" : "?")).join("")
      })
      assert.strictEqual(yield* bound("fanout", [["x"], ["y"]], [["a"], [""]]), "++")
      assert.strictEqual(yield* bound("direct", [["a"], ["b.c"]], [["a"], ["b.c"], ["b"], ["A"], [""]]), "++---")
      assert.strictEqual(
        yield* bound(
          "topic",
          [["a.*"], ["#.z"], ["m.#"], ["*.*.q"], ["a.#.b"]],
          [["a.b"], ["a"], ["z"], ["x.y.z"], ["m"], ["m.n.o"], ["c.d.q"], ["d.q"], ["a.c.d.b"], [""]]
        ),
        "+-+++++-+-"
      )
      assert.strictEqual(yield* bound("topic", [["#"]], [["a"], [""], ["a.b"]]), "+++")
      assert.strictEqual(
        yield* bound(
          "headers",
          [
            ["", { "x-match": "all", a: 1, b: "two" }],
            ["", { "x-match": "any", c: true, d: null }]
          ],
          [
            ["1", { a: 1, b: "two", e: 5 }],
            ["2", { a: 1 }],
            ["3", { a: "1", b: "two" }],
            ["4", { c: true }],
            ["5", { c: false }],
            ["6", { d: "whatever" }],
            ["7"]
          ]
        ),
        "+--+-+-"
      )
    })
  ),

  brokerLaw(
    "follows an alternate exchange, and the CC and BCC headers",
    Effect.gen(function* () {
      const broker = yield* Broker
      const names = yield* Temporary.TemporaryNames
      const [exchange, other, rest] = [names.exchange("first"), names.exchange("other"), names.queue("rest")]
      const [copied, hidden] = yield* Effect.all([declared("copied"), declared("hidden")])
      yield* broker.declare({
        exchanges: [
          { name: other, kind: "fanout" },
          { name: exchange, kind: "direct", arguments: { "alternate-exchange": other } }
        ],
        queues: [{ name: rest }],
        bindings: [{ exchange: other, queue: rest, routingKey: "" }]
      })
      const published = { purpose: "tasks", content: Buffer.from("x"), properties: {} } as const
      confirmed(yield* broker.publish({ ...published, exchange, routingKey: "nobody" }))
      assert.deepStrictEqual(
        (yield* drained(rest)).map(({ exchange, routingKey }) => [exchange, routingKey]),
        [[exchange, "nobody"]]
      )
      confirmed(yield* send(rest, "to all", { headers: { CC: [copied], BCC: [hidden], kept: 1 } }))
      for (const queue of [rest, copied, hidden]) {
        const [delivery] = yield* drained(queue)
        assert.deepStrictEqual(delivery?.properties.headers, { CC: [copied], kept: 1 })
        assert.strictEqual(delivery?.routingKey, rest)
      }
    })
  ),

  brokerLaw(
    "delivers every property, every kind of header, and any bytes unchanged",
    Effect.gen(function* () {
      const queue = yield* declared("properties")
      const { publish } = yield* Broker
      const content = Uint8Array.from({ length: 256 }, (_, byte) => byte)
      const properties: Properties = {
        contentType: "application/json",
        contentEncoding: "utf-8",
        persistent: false,
        priority: 7,
        correlationId: "correlation ☃",
        replyTo: "reply",
        expiration: 60_000,
        messageId: "message",
        timestamp: new Date(1_763_640_000_000),
        type: "type",
        appId: "app",
        headers: {
          text: "naïve ☃ 🚀",
          empty: "",
          whole: 1_763_640_000_000,
          negative: -5,
          fraction: 2.5,
          yes: true,
          nothing: null,
          time: new Date(1_763_640_000_000),
          list: [1, "two", [null, { three: 3 }]],
          table: { a: { b: false } }
        }
      }
      confirmed(yield* publish({ purpose: "tasks", exchange: "", routingKey: queue, content, properties }))
      confirmed(yield* send(queue, "bare"))
      const [full, bare] = yield* drained(queue)
      assert.deepStrictEqual(full?.properties, properties)
      assert.deepStrictEqual(Array.from(full?.content ?? []), Array.from(content))
      assert.deepStrictEqual(bare?.properties, { persistent: true, headers: {} })
    })
  ),

  brokerLaw(
    "returns the outcome of a publish: confirmed, returned, refused without an exchange, invalid",
    Effect.gen(function* () {
      const { publish } = yield* Broker
      const names = yield* Temporary.TemporaryNames
      const queue = yield* declared("outcomes")
      const to = (exchange: string, routingKey: string, properties: Properties = {}) =>
        publish({ purpose: "tasks", exchange, routingKey, content: Buffer.from("x"), properties })
      const outcomes = yield* Effect.all(
        [
          to("", queue),
          to("", names.queue("nobody")),
          to(names.exchange("missing"), ""),
          to("", queue, { priority: 256 }),
          to("", queue, { expiration: -1 }),
          to("", "k".repeat(256)),
          to("", queue, { messageId: "m".repeat(256) })
        ],
        { concurrency: 1 }
      )
      assert.deepStrictEqual(
        outcomes.map((outcome) => (outcome._tag === "Refused" ? outcome.reason : outcome._tag)),
        ["Confirmed", "Returned", "no_exchange", "invalid", "invalid", "invalid", "invalid"]
      )
      const details = outcomes.map((outcome) => ("detail" in outcome ? outcome.detail : ""))
      assert.match(details[1] ?? "", /^NO_ROUTE/)
      assert.match(details[2] ?? "", /^NOT_FOUND - no exchange '/)
      assert.match(details[3] ?? "", /priority/)
      assert.match(details[4] ?? "", /expiration/)
      assert.match(details[5] ?? "", /routingKey/)
      assert.match(details[6] ?? "", /messageId/)
      yield* ready(queue, 1)
    })
  ),

  brokerLaw(
    "refuses what AMQP cannot carry, and names the part",
    Effect.gen(function* () {
      const queue = yield* declared("refusing")
      const { publish } = yield* Broker
      const sent = {
        purpose: "tasks",
        exchange: "",
        routingKey: queue,
        content: Buffer.from("x"),
        properties: {}
      } as const
      for (const [field, given] of uncarriable) {
        const outcome = yield* publish({ ...sent, ...given })
        includes(outcome, { _tag: "Refused", reason: "invalid" })
        assert.ok("detail" in outcome && outcome.detail.includes(field), `${field} is not named`)
        confirmed(yield* publish(sent))
      }
      yield* ready(queue, uncarriable.length)
    })
  ),

  brokerLaw(
    "delivers headers of the maximum size and depth",
    Effect.gen(function* () {
      const queue = yield* declared("brimful")
      const others = {
        a: 1,
        b: -129,
        c: 40_000,
        d: 2 ** 40,
        e: 0.5,
        f: 2n ** 63n - 1n,
        g: null,
        h: true,
        i: new Date(0)
      }
      const all: ReadonlyArray<Fields> = [
        { pad: "é".repeat((65_536 - 14) / 2) },
        { bytes: new Uint8Array(65_536 - 15) },
        { ...others, pad: "p".repeat(65_536 - 4 - (4 + 5 + 7 + 11 + 11 + 11 + 3 + 4 + 11) - 9) },
        { deep: nested(100) }
      ]
      for (const headers of all) confirmed(yield* send(queue, "x", { headers }))
      const arrived = yield* drained(queue)
      assert.deepStrictEqual(
        arrived.map(({ properties }) => Object.keys(properties.headers ?? {})),
        all.map((headers) => Object.keys(headers))
      )
      for (const headers of all.slice(1, 3)) {
        const outcome = yield* send(queue, "x", { headers: { ...headers, "": null } })
        includes(outcome, { _tag: "Refused", reason: "invalid" })
      }
      assert.deepStrictEqual(arrived[3]?.properties.headers, all[3])
    })
  ),

  brokerLaw(
    "publishes for the same purpose and for others after an exchange was missing",
    Effect.gen(function* () {
      const { publish } = yield* Broker
      const missing = (yield* Temporary.TemporaryNames).exchange("missing")
      const queue = yield* declared("innocent")
      const content = Buffer.from("x")
      const outcomes = yield* Effect.all(
        [
          publish({ purpose: "statuses", exchange: "", routingKey: queue, content, properties: {} }),
          publish({ purpose: "tasks", exchange: missing, routingKey: "", content, properties: {} }),
          publish({ purpose: "retries", exchange: "", routingKey: queue, content, properties: {} }),
          publish({ purpose: "tasks", exchange: "", routingKey: queue, content, properties: {} })
        ],
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(
        outcomes.map(({ _tag }) => _tag),
        ["Confirmed", "Refused", "Confirmed", "Confirmed"]
      )
    })
  ),

  brokerLaw(
    "confirms each of more publishes than the window holds, and keeps their order",
    Effect.gen(function* () {
      const queue = yield* declared("many")
      const count = 1_000
      const outcomes = yield* Effect.all(
        Array.from({ length: count }, (_, n) => send(n % 10 === 3 ? `${queue}-nobody` : queue, `${n}`)),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(
        outcomes.map(({ _tag }) => _tag),
        Array.from({ length: count }, (_, n) => (n % 10 === 3 ? "Returned" : "Confirmed"))
      )
      const { takeN } = yield* reader(queue, 300)
      const some = yield* takeN(300)
      assert.deepStrictEqual(
        some.map(({ content }) => Number(text(content))),
        Array.from({ length: count }, (_, n) => n)
          .filter((n) => n % 10 !== 3)
          .slice(0, 300)
      )
      assert.deepStrictEqual(
        some.map(({ deliveryTag }) => deliveryTag),
        Array.from({ length: 300 }, (_, n) => n + 1)
      )
    })
  )
]
