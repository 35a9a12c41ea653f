import { EventEmitter } from "node:events"
import { setImmediate as turn } from "node:timers/promises"
import { assert, describe, it } from "@effect/vitest"
import { FrameOutbox } from "../../layers/amqp/Internals.ts"
import * as PublishFrames from "../../layers/amqp/PublishFrames.ts"
import * as FakeChannel from "./FakeChannel.ts"

describe("FrameOutbox", () => {
  it("sends the publishes of one turn in one write, and counts their tags", async () => {
    const { channel, writes } = FakeChannel.open()
    const outbox = new FrameOutbox(channel)
    assert.deepStrictEqual(
      ["a", "b", "c"].map((text) => outbox.send(message(text))),
      [1, 2, 3]
    )
    assert.isEmpty(writes)
    await turn()
    assert.deepStrictEqual(writes, [Buffer.concat(["a", "b", "c"].map(frames))])
    assert.strictEqual(outbox.send(message("d")), 4)
    await turn()
    assert.deepStrictEqual(writes[1], frames("d"))
  })

  it("does not write over what the socket has not sent yet, and uses the place again once it has", async () => {
    const { channel, connection, writes } = FakeChannel.open()
    const outbox = new FrameOutbox(channel)
    connection.stream.writableLength = 1
    for (const text of ["a", "b"]) {
      outbox.send(message(text))
      await turn()
    }
    connection.stream.writableLength = 0
    outbox.send(message("c"))
    await turn()
    assert.deepStrictEqual(writes, [frames("a"), frames("b"), frames("c")])
    outbox.send(message("d"))
    await turn()
    assert.strictEqual(writes[3]?.byteOffset, writes[0]?.byteOffset)
  })

  it("keeps the order of messages of which one alone is larger than its buffer", async () => {
    const { channel, connection, writes } = FakeChannel.open()
    connection.stream.writableLength = 1
    const outbox = new FrameOutbox(channel)
    const texts = ["a", "b".repeat(1_000_000), "c", "d".repeat(200_000), "e".repeat(200_000), "f"]
    for (const text of texts) outbox.send(message(text))
    await turn()
    assert.isTrue(Buffer.concat(writes).equals(Buffer.concat(texts.map(frames))))
  })

  it.each(["channel", "connection"] as const)("takes and sends nothing once the %s begins to close", async (which) => {
    const parts = FakeChannel.open()
    const outbox = new FrameOutbox(parts.channel)
    assert.strictEqual(outbox.send(message("a")), 1)
    parts[which].sendMessage = () => {}
    assert.isUndefined(outbox.send(message("b")))
    assert.isUndefined(new FrameOutbox(parts.channel).send(message("c")))
    await turn()
    assert.isEmpty(parts.writes)
  })

  it("sends nothing of a message that cannot be written, and the next one whole", async () => {
    const { channel, writes } = FakeChannel.open()
    const outbox = new FrameOutbox(channel)
    assert.throws(() => outbox.send({ ...message("a"), routingKey: "x".repeat(256) }), RangeError)
    assert.strictEqual(outbox.send(message("b")), 1)
    await turn()
    assert.deepStrictEqual(writes, [frames("b")])
  })

  it("refuses a channel that is not made as amqplib makes them", () => {
    assert.throws(() => new FrameOutbox(new EventEmitter()), TypeError)
  })
})

const message = (text: string) => ({
  exchange: "exchange",
  routingKey: "key",
  content: Buffer.from(text),
  properties: { headers: { text: "header" } }
})

const frames = (text: string): Buffer => {
  const given = message(text)
  const into = Buffer.alloc(PublishFrames.maxFrameBytes(given, FakeChannel.frameMax))
  return into.subarray(0, PublishFrames.write(into, 0, 1, FakeChannel.frameMax, given))
}
