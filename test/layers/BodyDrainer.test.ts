import { IncomingMessage } from "node:http"
import { Socket } from "node:net"
import { assert, describe, it, vi } from "@effect/vitest"
import { BodyDrainer } from "../../layers/http/BodyDrainer.ts"

const from = (address: string): IncomingMessage =>
  new IncomingMessage(Object.defineProperty(new Socket(), "remoteAddress", { value: address }))

/** A message of which these bytes have come, and nothing more comes. */
const begun = (address: string, bytes: number): IncomingMessage => {
  const incoming = from(address)
  incoming.push(Buffer.alloc(bytes))
  return incoming
}

const left = (incoming: IncomingMessage) => incoming.readableLength

const after = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

const until = async (holds: () => boolean) => {
  while (!holds()) await after(2)
}

describe("what refused requests still send", () => {
  it("is read though many others have stalled, without a turn of theirs", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] })
    try {
      const remainders = new BodyDrainer()
      for (let index = 0; index < 400; index++) remainders.add(from("192.0.2.1"))
      const incoming = begun("192.0.2.1", 1_000)
      remainders.add(incoming)
      await until(() => vi.getTimerCount() > 0)
      vi.advanceTimersToNextTimer()
      assert.strictEqual(left(incoming), 0)
    } finally {
      vi.useRealTimers()
    }
  })

  it("is read in turns of addresses", async () => {
    const remainders = new BodyDrainer()
    const crowd = Array.from({ length: 400 }, () => begun("192.0.2.1", 1_000))
    for (const incoming of crowd) remainders.add(incoming)
    const other = begun("192.0.2.2", 1_000)
    remainders.add(other)
    await until(() => left(other) === 0)
    assert.isAbove(crowd.filter((incoming) => left(incoming) > 0).length, 200)
  })

  it("is read to its end, which frees its place", async () => {
    const remainders = new BodyDrainer(4)
    const first = begun("192.0.2.1", 1_000)
    remainders.add(first)
    await until(() => left(first) === 0)
    for (const bytes of [500, 70_000, 70_000]) first.push(Buffer.alloc(bytes))
    await until(() => left(first) === 0)
    first.push(null)
    await until(() => first.readableEnded)
    first.destroy()
    await until(() => first.closed)
    const second = begun("192.0.2.1", 1_000)
    remainders.add(second)
    assert.isFalse(second.socket.destroyed)
    await until(() => left(second) === 0)
  })

  it("ends its connection where its address has a quarter of the places already", () => {
    const remainders = new BodyDrainer(8)
    const crowd = Array.from({ length: 3 }, () => from("192.0.2.1"))
    const other = from("192.0.2.2")
    for (const incoming of [...crowd, other]) remainders.add(incoming)
    assert.deepStrictEqual(
      [...crowd, other].map(({ socket }) => socket.writableEnded),
      [false, false, true, false]
    )
  })

  it("leaves a place to an address though many others hold all that they may", () => {
    const remainders = new BodyDrainer()
    for (let address = 1; address <= 20; address++) {
      for (let index = 0; index < 520; index++) remainders.add(from(`192.0.2.${address}`))
    }
    const other = from("198.51.100.1")
    remainders.add(other)
    assert.isFalse(other.socket.writableEnded)
  })
})
