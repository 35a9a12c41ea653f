import { Socket } from "node:net"
import { assert, beforeEach, describe, it, vi } from "@effect/vitest"
import { AcceptQueue } from "../../layers/http/AcceptQueue.ts"

const from = (address: string): Socket => Object.defineProperty(new Socket(), "remoteAddress", { value: address })

/** The time changes where a test says so: while a connection begins, and between turns of the event loop. */
let nowMs = 0
const pass = (ms: number) => {
  nowMs += ms
  vi.advanceTimersByTime(ms)
}
const turn = () => pass(1)

describe("new connections", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setImmediate", "setTimeout"] })
    const clock = vi.spyOn(performance, "now").mockImplementation(() => nowMs)
    return () => {
      clock.mockRestore()
      vi.useRealTimers()
    }
  })

  it("begin at once where few come, and the others in later turns, an address after the other", () => {
    const begun: Array<string> = []
    const arrivals = new AcceptQueue((socket) => begun.push(socket.remoteAddress ?? ""))
    for (let index = 0; index < 100; index++) arrivals.add(from("192.0.2.1"))
    arrivals.add(from("192.0.2.2"))
    assert.deepStrictEqual(
      begun,
      Array.from({ length: 32 }, () => "192.0.2.1")
    )
    for (let turns = 0; turns < 4; turns++) turn()
    assert.lengthOf(begun, 101)
    assert.include(begun.slice(32, 34), "192.0.2.2")
  })

  it("of one address have a quarter of the places to wait in, and those beyond are closed", () => {
    const arrivals = new AcceptQueue(() => {})
    const crowd = Array.from({ length: 32 + 1_024 + 1 }, () => from("192.0.2.1"))
    for (const socket of crowd) arrivals.add(socket)
    assert.deepStrictEqual(
      crowd.filter(({ destroyed }) => destroyed),
      crowd.slice(-1)
    )
    const other = from("192.0.2.2")
    arrivals.add(other)
    assert.isFalse(other.destroyed)
  })

  it("of twenty addresses that wait with all that they may leave places to another one", () => {
    const arrivals = new AcceptQueue(() => {})
    for (let address = 1; address <= 20; address++) {
      for (let index = 0; index < 1_100; index++) arrivals.add(from(`192.0.2.${address}`))
    }
    const others = Array.from({ length: 8 }, () => from("198.51.100.1"))
    for (const socket of others) arrivals.add(socket)
    assert.isFalse(others.some(({ destroyed }) => destroyed))
  })

  it("rest after a turn that was long, and come one by one as long as their turns are", () => {
    const begun: Array<number> = []
    const arrivals = new AcceptQueue(() => {
      begun.push(performance.now())
      nowMs += 15
    })
    for (let index = 0; index < 70; index++) arrivals.add(from("192.0.2.1"))
    for (let ms = 0; ms < 10_000; ms++) pass(1)
    assert.lengthOf(begun, 70)
    const [first = 0, second = 0, third = 0] = begun.slice(-3)
    // 15 ms of its own, and as many for others
    assert.isAtLeast(Math.min(second - first, third - second), 30)
  })

  it("leave a process without connections at rest", () => {
    const arrivals = new AcceptQueue(() => {})
    arrivals.add(from("192.0.2.1"))
    pass(100)
    assert.strictEqual(vi.getTimerCount(), 0)
  })

  it("are joined by connections whose request was refused", () => {
    const arrivals = new AcceptQueue(() => {})
    const calls: Array<string> = []
    const refused = from("192.0.2.1")
    for (const name of ["pause", "resume"] as const) {
      refused[name] = () => {
        calls.push(name)
        return refused
      }
    }
    arrivals.requeue(refused)
    assert.deepStrictEqual(calls, [])
    for (let index = 0; index < 31; index++) arrivals.add(from("192.0.2.1"))
    arrivals.requeue(refused)
    assert.deepStrictEqual(calls, ["pause"])
    turn()
    assert.deepStrictEqual(calls, ["pause", "resume"])
  })
})
