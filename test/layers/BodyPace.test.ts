import { createServer } from "node:http"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import * as WireNode from "../../layers/http/WireNode.ts"
import * as BodyPace from "../../src/gateway/request/BodyPace.ts"
import type { BodyFailure, Wire } from "../../src/gateway/request/Wire.ts"
import * as RawConnection from "../RawConnection.ts"
import { portOf } from "../upstream/SimulatorServer.ts"

const lease = { grow: () => undefined, release: () => {} }

/** Answers with what became of the body, read whole or as a stream. */
const serving = (pace: BodyPace.BodyPace, withinMs: number, streamed: boolean) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const server = createServer((incoming, outgoing) => {
          const wire = WireNode.make(incoming, outgoing, { pace })
          const tell = (result: Result.Result<number, BodyFailure>) =>
            wire.respond(200, [], `<${JSON.stringify(Result.isSuccess(result) ? result.success : result.failure)}>`)
          if (streamed) void counted(wire, withinMs).then(tell)
          else {
            wire.readBody({ maxBytes: 1_000_000, withinMs, lease }, (read) =>
              tell(Result.map(read, ({ length }) => length))
            )
          }
        })
        await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
        return server
      }),
      (server) =>
        Effect.promise(async () => {
          server.closeAllConnections()
          await new Promise((closed) => server.close(closed))
        })
    ),
    (server) => `http://127.0.0.1:${portOf(server.address())}`
  )

const counted = async (wire: Wire, idleMs: number): Promise<Result.Result<number, BodyFailure>> => {
  let failed: BodyFailure | undefined
  let length = 0
  const body = wire.streamBody({
    maxBytes: 1_000_000,
    idleMs,
    onFailure: (failure) => {
      failed = failure
    }
  })
  try {
    for await (const chunk of body) length += chunk.length
    return Result.succeed(length)
  } catch (defect) {
    if (failed === undefined) throw defect
    return Result.fail(failed)
  }
}

const head = (length: number) => `POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${length}\r\n\r\n`

describe("a request body", () => {
  for (const streamed of [false, true]) {
    const how = streamed ? "streamed" : "read whole"

    it.live(`that stops is given up, ${how}, long before its route's deadline`, () =>
      Effect.gen(function* () {
        const connection = yield* RawConnection.open(
          yield* serving({ idleMs: 100, graceMs: 60_000, bytesPerSecond: 1 }, 60_000, streamed)
        )
        connection.write(`${head(100)}some`)
        assert.include(yield* connection.until(/<.*>/), '"by":"idle"')
      })
    )

    it.live(`that trickles is given up, ${how}`, () =>
      Effect.gen(function* () {
        const connection = yield* RawConnection.open(
          yield* serving({ idleMs: 60_000, graceMs: 100, bytesPerSecond: 1_000_000 }, 60_000, streamed)
        )
        connection.write(head(100_000))
        const trickling = yield* Effect.forkChild(
          Effect.forever(
            Effect.andThen(
              Effect.sync(() => connection.write("x")),
              Effect.sleep("10 millis")
            )
          )
        )
        assert.include(yield* connection.until(/<.*>/), '"by":"rate"')
        void trickling
      })
    )

    it.live(`that is slow and steady is taken, ${how}`, () =>
      Effect.gen(function* () {
        const connection = yield* RawConnection.open(
          yield* serving({ idleMs: 30_000, graceMs: 20, bytesPerSecond: 1 }, 60_000, streamed)
        )
        connection.write(head(30))
        for (let sent = 0; sent < 30; sent++) {
          connection.write("x")
          yield* Effect.sleep("5 millis")
        }
        assert.include(yield* connection.until(/<.*>/), "<30>")
      })
    )

    it.live(`that does not meet its route's deadline is told so, ${how}`, () =>
      Effect.gen(function* () {
        const connection = yield* RawConnection.open(yield* serving(BodyPace.defaultPace, 50, streamed))
        connection.write(`${head(100)}some`)
        assert.include(yield* connection.until(/<.*>/), '"by":"deadline"')
      })
    )
  }

  it("says in a refusal which of them it was, and the way out", () => {
    const { defaultPace } = BodyPace
    assert.match(BodyPace.timeoutMessage(defaultPace, "deadline", 5), /within 5 ms \(timeout_ms of the route\)/)
    assert.match(BodyPace.timeoutMessage(defaultPace, "idle", 5), /paused for 15000 ms, which is the limit\. Send/)
    assert.match(BodyPace.timeoutMessage(defaultPace, "rate", 5), /less than 1024 bytes a second/)
  })
})
