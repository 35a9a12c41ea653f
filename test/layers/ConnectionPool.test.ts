import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { type Connection, ConnectionPool } from "../../layers/http/ConnectionPool.ts"
import * as ScriptedServer from "../upstream/ScriptedServer.ts"

describe("ConnectionPool", () => {
  it.effect("remembers an origin only while it has a connection", () =>
    Effect.gen(function* () {
      const pool = new ConnectionPool({ connectionsPerOrigin: 1, waitingPerOrigin: 1, idleConnections: 2 })
      const servers = yield* Effect.forEach(Array.from({ length: 5 }), () => ScriptedServer.serve(answerTwice))
      for (const { origin } of servers) pool.giveBack(yield* answered(pool, origin))
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
      pool.giveBack(older)
      pool.giveBack(newer)
      assert.strictEqual(yield* answered(pool, origin), newer)
    })
  )
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
    pool.take(origin, {
      granted: (connection) =>
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
