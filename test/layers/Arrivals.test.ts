import { Socket } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Arrivals } from "../../layers/http/Arrivals.ts"

const from = (address: string): Socket => Object.defineProperty(new Socket(), "remoteAddress", { value: address })

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

describe("new connections", () => {
  it("begin at once where few come, and the others in later turns, an address after the other", async () => {
    const begun: Array<Socket> = []
    const arrivals = new Arrivals((socket) => begun.push(socket))
    const crowd = Array.from({ length: 100 }, () => from("192.0.2.1"))
    for (const socket of crowd) arrivals.add(socket)
    const other = from("192.0.2.2")
    arrivals.add(other)
    assert.deepStrictEqual(begun, crowd.slice(0, 32))
    await turn()
    assert.include(begun, other)
    assert.isBelow(begun.length, 101)
    while (begun.length < 101) await turn()
    assert.deepStrictEqual(
      begun.filter((socket) => socket !== other),
      crowd
    )
  })

  it("of one address have a quarter of the places to wait in, and those beyond are closed", async () => {
    const arrivals = new Arrivals(() => {})
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
})
