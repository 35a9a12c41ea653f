import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { type Connection, ConnectionPool, type ConnectionWaiter } from "../../layers/http/ConnectionPool.ts"
import { FairQueue } from "../../layers/http/FairQueue.ts"
import * as ScriptedServer from "../upstream/ScriptedServer.ts"

describe("ConnectionPool", () => {
  it.effect("remembers an origin only while it has a connection", () =>
    Effect.gen(function* () {
      const pool = new ConnectionPool({ connectionsPerOrigin: 1, waitingPerOrigin: 1, idleConnections: 2 })
      const servers = yield* Effect.forEach(Array.from({ length: 5 }), () => ScriptedServer.serve(answerTwice))
      for (const { origin } of servers) pool.release(yield* answered(pool, origin))
      assert.strictEqual(pool.origins, 2)
      for (const { peers } of servers.slice(0, 2)) peers[0]?.end()
      yield* forgotten(pool)
    })
  )

  it.effect("gives the connection that was used last, which is the least likely to be stale", () =>
    Effect.gen(function* () {
      const pool = new ConnectionPool({ connectionsPerOrigin: 2, waitingPerOrigin: 1, idleConnections: 2 })
      const { origin } = yield* ScriptedServer.serve(answerTwice)
      const older = yield* answered(pool, origin)
      const newer = yield* answered(pool, origin)
      pool.release(older)
      pool.release(newer)
      assert.strictEqual(yield* answered(pool, origin), newer)
    })
  )
})

describe("the share of a caller", () => {
  it("leaves connections to callers that come when dozens hold all that they can", () => {
    const most = 1_024
    const pool = new ConnectionPool({ connectionsPerOrigin: most, waitingPerOrigin: 4_096, idleConnections: 1 })
    const holds = (caller: string): number => {
      for (let held = 0; ; held++) {
        if (pool.acquire("http://127.0.0.1:9", { caller, onConnection: () => {} }) !== "granted") return held
      }
    }
    const greedy = Array.from({ length: 20 }, (_, index) => String(index))
    const held = greedy.map(holds)
    assert.deepStrictEqual(held.slice(0, 10), [256, 256, 224, 112, 56, 28, 14, 8, 8, 8])
    assert.isAbove(holds("another"), 0)
    pool.destroy()
  })
})

describe("FairQueue", () => {
  const taker = (caller: string | undefined): ConnectionWaiter => ({ caller, onConnection: () => {} })

  it("gives callers turns, passes over those who hold their share, and keeps each one's order", () => {
    const line = new FairQueue(100)
    const [a1, a2, b1, b2, c1] = [taker("a"), taker("a"), taker("b"), taker("b"), taker("c")]
    for (const one of [a1, a2, b1, b2, c1]) assert.strictEqual(line.add(one), "waiting")
    const next = () => line.next((caller) => caller !== "c")
    assert.deepStrictEqual([next(), next(), next(), next(), next()], [a1, b1, a2, b2, undefined])
    assert.strictEqual(line.size, 1)
    assert.strictEqual(
      line.next(() => true),
      c1
    )
    assert.strictEqual(line.size, 0)
  })

  it("has a place for who comes when ten callers have taken all that they can, and a turn within theirs", () => {
    const line = new FairQueue(4_096)
    const greedy = Array.from({ length: 10 }, (_, index) => String(index))
    for (const caller of greedy) while (line.add(taker(caller)) === "waiting");
    const late = taker("late")
    assert.strictEqual(line.add(late), "waiting")
    const turns = greedy.map(() => line.next(() => true))
    assert.notInclude(turns, late)
    assert.strictEqual(
      line.next(() => true),
      late
    )
  })

  it("gives a caller a quarter of the places, the program itself all of them, and a place back to who leaves", () => {
    const line = new FairQueue(8)
    const mine = [taker("a"), taker("a")]
    assert.deepStrictEqual(
      mine.map((one) => line.add(one)),
      ["waiting", "waiting"]
    )
    assert.strictEqual(line.add(taker("a")), "full")
    line.remove(mine[0]!)
    line.remove(mine[0]!)
    assert.strictEqual(line.add(taker("a")), "waiting")
    for (let index = 0; index < 6; index++) assert.strictEqual(line.add(taker(undefined)), "waiting")
    assert.strictEqual(line.add(taker("b")), "full")
  })
})

const answerTwice: ScriptedServer.Script = async (peer) => {
  for (let i = 0; i < 2; i++) {
    await peer.request()
    await peer.write(ScriptedServer.answer("ok"))
  }
}

/** A connection that has served one request. */
const answered = (pool: ConnectionPool, origin: string): Effect.Effect<Connection, Error> =>
  Effect.callback((resume) => {
    pool.acquire(origin, {
      caller: undefined,
      onConnection: (connection) =>
        connection.dispatch(
          { method: "GET", path: "/" },
          {
            onRequestStart: () => {},
            onResponseStart: () => {},
            onResponseData: () => {},
            onResponseEnd: () => queueMicrotask(() => resume(Effect.succeed(connection))),
            onResponseError: (_, error) => resume(Effect.fail(error))
          }
        )
    })
  })

const forgotten = (pool: ConnectionPool) =>
  Effect.promise(async () => {
    while (pool.origins > 0) await new Promise(setImmediate)
  })
