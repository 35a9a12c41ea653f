import { it } from "@effect/vitest"
import { Effect, Option, Redacted, Stream } from "effect"
import * as DatabasePostgres from "../../layers/DatabasePostgres.ts"
import { Database } from "../../src/services/Database.ts"
import * as TcpProxy from "../TcpProxy.ts"

const log = (s: string) => Effect.sync(() => process.stderr.write(`${Math.round(performance.now())} ${s}\n`))
it.live(
  "recover",
  () =>
    Effect.gen(function* () {
      const proxy = yield* TcpProxy.make({ host: "127.0.0.1", port: 5432 })
      yield* Effect.gen(function* () {
        const { sql, changes, notify, ping } = yield* Database
        yield* log("up")
        const notices = yield* changes("outage")
        yield* log("following")
        yield* proxy.cut
        yield* log("cut")
        yield* Effect.flip(Stream.runDrain(notices))
        yield* log("stream failed")
        yield* Effect.flip(ping)
        yield* log("ping failed")
        yield* Effect.flip(changes("outage"))
        yield* log("changes failed")
        yield* proxy.restore
        yield* ping
        yield* log("ping ok")
        const again = yield* changes("outage")
        yield* notify("outage", "over")
        yield* Stream.runHead(again)
        yield* log("done")
      }).pipe(
        Effect.scoped,
        Effect.tap(() => log("scope closed")),
        Effect.provide(
          DatabasePostgres.layer({ url: Redacted.make(`postgres://postgres@127.0.0.1:${proxy.port}/postgres`) })
        )
      )
      yield* log("layer closed")
    }).pipe(
      Effect.scoped,
      Effect.tap(() => log("proxy closed"))
    ),
  8000
)
it.live(
  "close",
  () =>
    Effect.gen(function* () {
      const proxy = yield* TcpProxy.make({ host: "127.0.0.1", port: 5432 })
      yield* Effect.gen(function* () {
        const { changes, ping, sql, transaction } = yield* Database
        yield* changes("kept")
        yield* proxy.freeze
        yield* log("frozen")
        yield* Effect.scoped(changes("left")).pipe(Effect.timeoutOption("100 millis"), Effect.forkScoped)
        yield* Effect.forkScoped(transaction(sql`SELECT 1`), { startImmediately: true })
        yield* Effect.flip(ping)
        yield* log("ping failed")
      }).pipe(
        Effect.scoped,
        Effect.tap(() => log("scope closed")),
        Effect.provide(
          DatabasePostgres.layer({ url: Redacted.make(`postgres://postgres@127.0.0.1:${proxy.port}/postgres`) })
        )
      )
      yield* log("layer closed")
    }).pipe(
      Effect.scoped,
      Effect.tap(() => log("proxy closed"))
    ),
  20000
)
