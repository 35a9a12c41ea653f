import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Fields from "../../layers/amqp/Fields.ts"
import * as Messages from "../../layers/amqp/Messages.ts"
import * as PublishFrames from "../../layers/amqp/PublishFrames.ts"
import type { Field, Properties, Publication } from "../../src/services/Broker.ts"

describe("PublishFrames", () => {
  it("writes what amqplib writes, to the byte, and no more than it asks room for", () => {
    fc.assert(
      fc.property(
        message,
        fc.integer({ min: 1, max: 65_535 }),
        fc.constantFrom(64, 4_096, 131_072),
        (given, ch, max) => {
          fc.pre(Messages.problemOf(given) === undefined)
          const into = Buffer.alloc(3 + PublishFrames.maxFrameBytes(given, max))
          const end = PublishFrames.write(into, 3, ch, max, given)
          assert.deepStrictEqual(into.subarray(3, end), byAmqplib(given, ch, max))
        }
      ),
      { numRuns: 1_000 }
    )
  })

  it("has room for the largest properties and headers there can be", () => {
    const long = "x".repeat(255)
    const texts = { contentType: long, contentEncoding: long, correlationId: long, replyTo: long, messageId: long }
    const more = {
      type: long,
      userId: long,
      appId: long,
      expiration: 4_294_967_295,
      priority: 1,
      timestamp: new Date(0)
    }
    const headers = { large: "x".repeat(65_536 - 15) }
    const given = { exchange: long, routingKey: long, properties: { ...texts, ...more, headers } }
    assert.isUndefined(Messages.problemOf(given))
    for (const size of [0, 1, 4_088, 4_089, 10_000]) {
      const message = { ...given, content: new Uint8Array(size) }
      const into = Buffer.alloc(PublishFrames.maxFrameBytes(message, 4_096))
      const end = PublishFrames.write(into, 0, 1, 4_096, message)
      assert.deepStrictEqual(into.subarray(0, end), byAmqplib(message, 1, 4_096))
    }
  })

  it("throws at a text that has grown since it was checked, and does not write a frame that is none", () => {
    const given = { exchange: "x".repeat(256), routingKey: "", properties: {}, content: new Uint8Array() }
    assert.throws(() => PublishFrames.write(Buffer.alloc(1_000), 0, 1, 4_096, given), RangeError)
    const headers = { grown: "x".repeat(1_000) }
    const full = { exchange: "", routingKey: "", properties: { headers }, content: new Uint8Array() }
    assert.throws(() => PublishFrames.write(Buffer.alloc(1_000), 0, 1, 4_096, full), RangeError)
  })
})

describe("properties that arrive", () => {
  const received = {
    contentType: undefined,
    contentEncoding: undefined,
    headers: undefined,
    deliveryMode: undefined,
    priority: undefined,
    correlationId: undefined,
    replyTo: undefined,
    expiration: undefined,
    messageId: undefined,
    timestamp: undefined,
    type: undefined,
    userId: undefined,
    appId: undefined,
    clusterId: undefined
  }

  it("have a timestamp where it is a date, which microseconds in place of seconds are not", () => {
    const of = (timestamp: number) => Messages.propertiesOf({ ...received, timestamp }).timestamp
    assert.deepStrictEqual(of(1_775_469_600), new Date("2026-04-06T10:00:00Z"))
    assert.isUndefined(of(1_775_469_600_000_000))
  })
})

const short = fc.oneof(fc.string({ maxLength: 40 }), fc.string({ unit: "binary", maxLength: 60 }))

const numbers = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.integer(),
  fc.maxSafeInteger(),
  fc.constantFrom(
    -129,
    -128,
    127,
    128,
    -32_769,
    -32_768,
    32_767,
    32_768,
    2 ** 31 - 1,
    2 ** 31,
    -(2 ** 31),
    -(2 ** 31) - 1
  ),
  fc.constantFrom(2 ** 50 + 0.5, 2 ** 62, 2 ** 63, -(2 ** 63), -(2 ** 64), -0, 1e300)
)

const time = fc.date({ min: new Date(0), noInvalidDate: true })

const { fields } = fc.letrec<{ field: Field; fields: Record<string, Field> }>((tie) => ({
  field: fc.oneof(
    { maxDepth: 3 },
    fc.oneof(
      fc.string({ unit: "binary" }),
      numbers,
      fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
      fc.boolean(),
      fc.constant(null),
      time,
      fc.uint8Array()
    ),
    fc.array(tie("field"), { maxLength: 3 }),
    tie("fields")
  ),
  fields: fc.dictionary(fc.oneof(short, fc.constantFrom("!", "value", "CC")), tie("field"), { maxKeys: 4 })
}))

const properties: fc.Arbitrary<Properties> = fc.record(
  {
    contentType: short,
    contentEncoding: short,
    headers: fields,
    persistent: fc.boolean(),
    priority: fc.integer({ min: 0, max: 255 }),
    correlationId: short,
    replyTo: short,
    expiration: fc.integer({ min: 0, max: 4_294_967_295 }),
    messageId: short,
    timestamp: time,
    type: short,
    userId: short,
    appId: short
  },
  { requiredKeys: [] }
)

type Message = Omit<Publication, "purpose">

const message: fc.Arbitrary<Message> = fc.record({
  exchange: short,
  routingKey: short,
  content: fc.oneof(fc.uint8Array({ maxLength: 300 }), fc.uint8Array({ minLength: 4_080, maxLength: 4_100 })),
  properties
})

/** The parts of amqplib that its door does not lead to. */
const inside = (part: string) => {
  const require = createRequire(import.meta.url)
  return require(join(dirname(require.resolve("amqplib")), "lib", part))
}
const { Connection } = inside("connection.js")
const Args = inside("api_args.js")
const defs = inside("defs.js")

const byAmqplib = (
  { content, exchange, properties, routingKey }: Message,
  channel: number,
  frameMax: number
): Buffer => {
  const { headers, persistent, timestamp, ...rest } = properties
  const written: Array<Buffer> = []
  const { sendContent, sendMessage } = Connection.prototype
  const channels = { [channel]: { buffer: { write: (bytes: Buffer) => written.push(Buffer.from(bytes)) } } }
  const fields = Args.publish(exchange, routingKey, {
    ...rest,
    mandatory: true,
    persistent: persistent !== false,
    ...(headers !== undefined && { headers: Fields.toWire(headers) }),
    ...(timestamp !== undefined && { timestamp: Math.floor(timestamp.getTime() / 1_000) })
  })
  const connection = { channels, frameMax, sendContent }
  sendMessage.call(connection, channel, defs.BasicPublish, fields, defs.BasicProperties, fields, Buffer.from(content))
  return Buffer.concat(written)
}
