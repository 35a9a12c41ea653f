import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { FrameOutbox } from "../../layers/amqp/Internals.ts"
import { Publisher } from "../../layers/amqp/Publisher.ts"
import * as FakeChannel from "./FakeChannel.ts"

type Channel = ReturnType<typeof FakeChannel.open>["channel"]

/** A publisher on channels that are opened when it asks, of a broker that miscounts or not; what became of its publishes. */
const make = (doubts: boolean, limits: { readonly window?: number; readonly within?: number } = {}) => {
  const channels: Array<Channel> = []
  const discarded: Array<Channel> = []
  const outcomes: Array<string> = []
  const publisher: Publisher<Channel> = new Publisher<Channel>(
    { window: limits.window ?? 10, timeoutMs: limits.within ?? 60_000 },
    () => {
      const { channel } = FakeChannel.open()
      channels.push(channel)
      publisher.attach(channel, new FrameOutbox(channel), doubts)
    },
    (channel) => void discarded.push(channel)
  )
  const publish = (...texts: ReadonlyArray<string>) => {
    for (const text of texts) {
      const content = Buffer.from(text)
      publisher.publish({ exchange: "exchange", routingKey: text, content, properties: {} }, (answer) => {
        const exit = Effect.runSyncExit(answer)
        outcomes.push(`${text} ${Exit.isSuccess(exit) ? exit.value._tag : "?"}`)
      })
    }
  }
  const latest = () => channels.at(-1) ?? assert.fail("no channel was opened")
  const ack = (deliveryTag: number, multiple = false) => void latest().emit("ack", { deliveryTag, multiple })
  const nack = (deliveryTag: number, multiple = false) => void latest().emit("nack", { deliveryTag, multiple })
  const giveBack = (text: string, tag: number) => {
    const properties = {}
    const fields = { exchange: "exchange", routingKey: text, replyText: "NO_ROUTE" }
    latest().emit("return", { fields, properties, content: Buffer.from(text) })
    ack(tag)
  }
  return { ack, channels, discarded, giveBack, latest, nack, outcomes, publish, publisher }
}

describe("a publisher to a stream that may miscount", () => {
  it("sends again, on a new channel, what is confirmed behind something that was returned", () => {
    const { ack, channels, discarded, giveBack, outcomes, publish } = make(true)
    publish("a", "b", "c")
    giveBack("a", 1)
    ack(2)
    assert.deepStrictEqual(outcomes, ["a Returned"])
    // c still owes its answer
    assert.strictEqual(channels.length, 1)
    publish("d")
    ack(3)
    assert.deepStrictEqual(discarded, channels.slice(0, 1))
    assert.strictEqual(channels.length, 2)
    ack(3, true)
    assert.deepStrictEqual(outcomes, ["a Returned", "b Confirmed", "c Confirmed", "d Confirmed"])
  })

  it("believes a broker that counts well, and a channel on which nothing was returned", () => {
    for (const doubts of [true, false]) {
      const { ack, channels, giveBack, outcomes, publish } = make(doubts)
      publish("a", "b")
      ack(1)
      if (doubts) ack(2)
      else giveBack("b", 2)
      publish("c")
      ack(3)
      assert.deepStrictEqual(outcomes, ["a Confirmed", doubts ? "b Confirmed" : "b Returned", "c Confirmed"])
      assert.strictEqual(channels.length, 1)
    }
  })

  it("does not take a refusal for a sign: what refuses is another queue, and the stream has counted", () => {
    const { ack, channels, nack, outcomes, publish } = make(true)
    publish("a", "b")
    nack(1)
    ack(2)
    assert.deepStrictEqual(outcomes, ["a Refused", "b Confirmed"])
    assert.strictEqual(channels.length, 1)
  })

  it("hears nothing more of a channel that it has left", () => {
    const { ack, channels, giveBack, outcomes, publish } = make(true)
    publish("a", "b")
    giveBack("a", 1)
    ack(2)
    channels[0]?.emit("nack", { deliveryTag: 1, multiple: false })
    assert.deepStrictEqual(outcomes, ["a Returned"])
    ack(1)
    assert.deepStrictEqual(outcomes, ["a Returned", "b Confirmed"])
  })

  it("settles a doubted publish by no later answer for many", () => {
    const { giveBack, ack, latest, nack, outcomes, publish } = make(true)
    publish("a", "b", "c")
    giveBack("a", 1)
    ack(2)
    const first = latest()
    nack(3, true)
    assert.deepStrictEqual(outcomes, ["a Returned", "c Refused"])
    assert.notStrictEqual(latest(), first)
    ack(1)
    assert.deepStrictEqual(outcomes, ["a Returned", "c Refused", "b Confirmed"])
  })

  it("says of nothing that it was not stored which an earlier channel may have stored", () => {
    for (const end of ["nack", "return", "close"] as const) {
      const { ack, giveBack, latest, nack, outcomes, publish, publisher } = make(true)
      publish("a", "b")
      giveBack("a", 1)
      ack(2)
      if (end === "nack") nack(1)
      else if (end === "return") giveBack("b", 1)
      else {
        publisher.detach(new Error("the connection is gone"))
        publisher.close("closed")
      }
      assert.deepStrictEqual(outcomes, ["a Returned", "b Unknown"], end)
      assert.isDefined(latest())
    }
  })

  it("does not wait for ever for the answers that the channel owes", async () => {
    const { ack, channels, giveBack, outcomes, publish } = make(true)
    publish("a", "b", "c")
    giveBack("a", 1)
    ack(2)
    assert.strictEqual(channels.length, 1)
    await new Promise((resolve) => setTimeout(resolve, 400))
    assert.strictEqual(channels.length, 2)
    ack(2, true)
    assert.deepStrictEqual(outcomes, ["a Returned", "b Confirmed", "c Confirmed"])
  })

  it("leaves a channel on which publishes are never answered, as they would fill the window", async () => {
    const { ack, channels, giveBack, outcomes, publish } = make(true, { window: 2, within: 50 })
    publish("a")
    giveBack("a", 1)
    publish("b", "c")
    await new Promise((resolve) => setTimeout(resolve, 150))
    assert.deepStrictEqual(outcomes, ["a Returned", "b Unknown", "c Unknown"])
    publish("d")
    assert.strictEqual(channels.length, 2)
    ack(1)
    assert.deepStrictEqual(outcomes.at(-1), "d Confirmed")
  })

  it("answers also whoever stood behind the publish that ended the channel after the close", () => {
    const { outcomes, publish, publisher } = make(true)
    publish("a", "b")
    publisher.close("closed")
    publisher.detach(
      Object.assign(new Error("PRECONDITION_FAILED - message size 1 is larger than the maximum"), {
        code: 406,
        classId: 60,
        methodId: 40
      })
    )
    assert.deepStrictEqual(outcomes.toSorted(), ["a Refused", "b Refused"])
  })

  it("ends when it is closed while it doubts", async () => {
    const { ack, giveBack, outcomes, publish, publisher } = make(true)
    publish("a", "b", "c")
    giveBack("a", 1)
    ack(2)
    publisher.close("closed")
    await Effect.runPromise(publisher.idle)
    assert.deepStrictEqual(outcomes, ["a Returned", "b Unknown", "c Unknown"])
  })
})
