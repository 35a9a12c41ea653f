import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import * as DeadLetter from "../../../src/messaging/failure/DeadLetter.ts"
import type { Fields, Properties } from "../../../src/services/Broker.ts"

const deliveryOf = (content: string | Uint8Array, properties: Properties = {}) => ({
  queue: "tasks.queue",
  exchange: "",
  routingKey: "tasks.queue",
  content: Buffer.from(content),
  properties,
  redelivered: false,
  deliveryTag: 1,
  epoch: 1,
  settle: () => "requested" as const
})

const dead = (content: string | Uint8Array, properties: Properties = {}, headers: Fields = {}) =>
  DeadLetter.recordOf({
    delivery: deliveryOf(content, properties),
    queue: "tasks.queue.dlq",
    sourceQueue: "tasks.queue",
    retryQueue: "tasks.queue.retry.30000ms.quorum",
    taskId: "task-123",
    reason: "handler_error",
    exceptionType: "RangeError",
    exceptionMessage: "no such page",
    exceptionStack: "",
    attempt: 3,
    maxRetries: 3,
    headers,
    at: "2026-03-21T01:02:03.456789Z"
  })

describe("DeadLetter", () => {
  it("has the identity that the original gives it", () => {
    const record = dead('{"task_id":"task-123"}', { correlationId: "corr-123" })
    assert.strictEqual(record.dlq_id, "c63cf1f6ef589f971cb7459326536647537135804b0118d9bbaa610b34f91824")
    assert.strictEqual(record.dead_lettered_at, "2026-03-21T01:02:03.456789+00:00")
  })

  it.each([
    ["json", '{"a":[1,null]}', { a: [1, null] }],
    ["json", "5", 5],
    ["text", "{", "{"],
    ["text", "", ""],
    ["base64", Uint8Array.of(0xff, 0xfe), "//4="]
  ] as const)("body_encoding %s: %s", (encoding, content, body) => {
    const record = dead(content)
    assert.strictEqual(record.body_encoding, encoding)
    assert.deepStrictEqual(record.body, body)
    assert.strictEqual(record.raw_body_b64, Buffer.from(content).toString("base64"))
  })

  it("makes headers safe for JSON, and reads back what it wrote", () => {
    const record = dead(
      "{}",
      {},
      {
        text: "ö",
        nothing: null,
        wide: 2n ** 60n,
        narrow: 7n,
        at: new Date(0),
        bytes: Uint8Array.of(1, 2),
        list: ["a", [new Date(1_000)]],
        table: { deep: 1n }
      }
    )
    assert.deepStrictEqual(record.headers, {
      text: "ö",
      nothing: null,
      wide: "1152921504606846976",
      narrow: 7,
      at: "1970-01-01T00:00:00.000Z",
      bytes: "AQI=",
      list: ["a", ["1970-01-01T00:00:01.000Z"]],
      table: { deep: 1 }
    })
    const read = Schema.decodeUnknownSync(DeadLetter.DeadLetterRecord)(JSON.parse(JSON.stringify(record)))
    assert.deepStrictEqual(read, record)
  })
})
