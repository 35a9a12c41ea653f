import { assert, describe, it, layer } from "@effect/vitest"
import { type Context, Deferred, Duration, Effect, Exit, Fiber, Layer, Scope } from "effect"
import * as UpstreamHttp from "../../layers/UpstreamHttp.ts"
import { type Sink, Upstream } from "../../src/services/Upstream.ts"
import { eventually } from "../Eventually.ts"
import { collector } from "../upstream/Collector.ts"
import { exchange, failure, left } from "../upstream/Exchanges.ts"
import { answer, head, type Peer, type Script, serve } from "../upstream/ScriptedServer.ts"
import * as SimulatorServer from "../upstream/SimulatorServer.ts"

layer(UpstreamHttp.layer, { excludeTestServices: true })("UpstreamHttp: flow", (it) => {
  it.effect("a paused sink keeps a large answer at the server", () =>
    Effect.gen(function* () {
      const total = 50 * 1024 * 1024
      const piece = Buffer.alloc(1024 * 1024)
      let sent = 0
      const { origin } = yield* serve(async (peer) => {
        await peer.request()
        await peer.write(head(200, ["content-length", String(total)]))
        for (; sent < total; sent += piece.byteLength) await peer.write(piece)
      })
      const paused = yield* Deferred.make<void>()
      let received = 0
      let resume = () => {}
      const sink: Sink = {
        head: () => "continue",
        chunk: (bytes) => {
          received += bytes.byteLength
          return received === bytes.byteLength ? "pause" : "continue"
        },
        onDrain: (drained) => {
          resume = drained
          Deferred.doneUnsafe(paused, Effect.void)
        }
      }
      const fiber = yield* Effect.forkChild(exchange(origin, sink, { idleWithinMs: 150 }))
      yield* Deferred.await(paused)
      yield* Effect.sleep(300)
      assert.isBelow(received, 1024 * 1024)
      assert.isBelow(sent, total / 2)
      resume()
      yield* Fiber.join(fiber)
      assert.strictEqual(received, total)
    })
  )

  it.effect("a slow reader of the request holds back its source", () =>
    Effect.gen(function* () {
      const { origin } = yield* serve((peer) => peer.stopReading())
      let produced = 0
      const source = async function* () {
        for (; produced < 1_000; produced++) yield Buffer.alloc(65_536)
      }
      const stuck = exchange(origin, collector(), { method: "POST", body: source(), headersWithinMs: 250 })
      const error = yield* Effect.flip(stuck)
      assert.deepStrictEqual([error.phase, error.reason], ["headers", "timeout"])
      assert.isBelow(produced, 500)
    })
  )

  it.effect("chunks within the deadline keep a long answer alive", () =>
    Effect.gen(function* () {
      const { origin } = yield* SimulatorServer.serve({ paceMs: 200 })
      const sink = collector()
      const body = { model: "m", stream: true, messages: [{ role: "user", content: "word ".repeat(6) }] }
      yield* exchange(origin, sink, {
        method: "POST",
        target: "/v1/chat/completions",
        headers: ["authorization", "Bearer any"],
        body: Buffer.from(JSON.stringify(body)),
        headersWithinMs: 1_000,
        idleWithinMs: 1_000
      })
      assert.match(sink.body.toString(), /\[DONE\]/)
    })
  )

  const stages: ReadonlyArray<readonly [string, Script]> = [
    ["before the head", () => {}],
    ["within the body", (peer) => peer.write(`${head(200, ["content-length", "10"])}some`)]
  ]
  for (const [stage, script] of stages) {
    it.effect(`interruption ${stage} reaches the server at once`, () =>
      Effect.gen(function* () {
        const arrived = yield* Deferred.make<Peer>()
        const { origin } = yield* serve(async (peer) => {
          await peer.request()
          await script(peer)
          Deferred.doneUnsafe(arrived, Effect.succeed(peer))
        })
        const fiber = yield* Effect.forkChild(exchange(origin, collector()))
        const peer = yield* Deferred.await(arrived)
        yield* Fiber.interrupt(fiber)
        yield* left(peer)
      })
    )
  }

  it.effect("interruption of a connecting exchange gives its socket up", () =>
    Effect.gen(function* () {
      const arrived = yield* Deferred.make<Peer>()
      const { secureOrigin } = yield* serve((peer) => void Deferred.doneUnsafe(arrived, Effect.succeed(peer)))
      const fiber = yield* Effect.forkChild(exchange(secureOrigin, collector()))
      const peer = yield* Deferred.await(arrived)
      yield* Fiber.interrupt(fiber)
      yield* left(peer)
    })
  )

  it.effect("stop reaches the server at once", () =>
    Effect.gen(function* () {
      const { origin, requests } = yield* SimulatorServer.serve({ paceMs: 10_000 })
      const body = { model: "m", stream: true, messages: [{ role: "user", content: "hello" }] }
      const stopped = exchange(origin, collector({ chunk: () => "stop" }), {
        method: "POST",
        target: "/v1/chat/completions",
        headers: ["authorization", "Bearer any"],
        body: Buffer.from(JSON.stringify(body))
      })
      const error = yield* Effect.flip(stopped)
      assert.deepStrictEqual([error.phase, error.reason], ["body", "stopped"])
      assert.isFalse(yield* Effect.promise(async () => requests[0]?.answered))
    })
  )
})

layer(UpstreamHttp.layer, { excludeTestServices: true })("UpstreamHttp: connections", (it) => {
  it.effect("one connection serves one exchange after the other", () =>
    Effect.gen(function* () {
      const { origin, peers } = yield* serve(keepAnswering)
      for (let i = 0; i < 5; i++) yield* exchange(origin, collector())
      assert.strictEqual(peers.length, 1)
    })
  )

  it.effect("a connection that the server closed while idle is not used again", () =>
    Effect.gen(function* () {
      const { origin, peers } = yield* serve(async (peer) => {
        await peer.request()
        await peer.write(answer("ok"))
        peer.end()
      })
      yield* exchange(origin, collector())
      yield* left(peers[0])
      yield* exchange(origin, collector())
      assert.strictEqual(peers.length, 2)
    })
  )

  it.effect("a connection that dies under a request is not retried, even if another would have served", () =>
    Effect.gen(function* () {
      const { origin, peers } = yield* serve(async (peer) => {
        await peer.request()
        await peer.write(answer("ok"))
        if (peer.index > 0) return
        await peer.request()
        peer.reset()
      })
      yield* exchange(origin, collector())
      assert.deepStrictEqual(yield* failure(origin), ["headers", "reset"])
      yield* exchange(origin, collector())
      assert.strictEqual(peers.length, 2)
    })
  )

  it.effect("600 streams to one origin run side by side", () =>
    Effect.gen(function* () {
      let waiting = 0
      const everybody = yield* Deferred.make<void>()
      const { origin } = yield* serve(async (peer) => {
        await peer.request()
        waiting += 1
        if (waiting === 600) Deferred.doneUnsafe(everybody, Effect.void)
        await Effect.runPromise(Deferred.await(everybody))
        await peer.write(answer("ok"))
      })
      const sinks = Array.from({ length: 600 }, () => collector())
      yield* Effect.forEach(sinks, (sink) => exchange(origin, sink, { headersWithinMs: 60_000 }), {
        concurrency: "unbounded"
      })
      assert.isTrue(sinks.every((sink) => sink.body.toString() === "ok"))
    })
  )
})

describe("UpstreamHttp: limits and closing", () => {
  it.live("exchanges beyond the limit wait in line, and leave it at their deadline", () =>
    Effect.gen(function* () {
      const first = yield* Deferred.make<Peer>()
      const { origin, peers } = yield* serve(async (peer) => {
        await peer.request()
        Deferred.doneUnsafe(first, Effect.succeed(peer))
        await peer.request()
        await peer.write(answer("second"))
      })
      const one = yield* Effect.forkChild(exchange(origin, collector()))
      const peer = yield* Deferred.await(first)
      assert.deepStrictEqual(yield* failure(origin, { headersWithinMs: 60 }), ["connect", "busy"])
      const sink = collector()
      const next = yield* Effect.forkChild(exchange(origin, sink))
      yield* Effect.yieldNow
      yield* Effect.promise(() => peer.write(answer("first")))
      yield* Fiber.join(one)
      yield* Fiber.join(next)
      assert.strictEqual(sink.body.toString(), "second")
      assert.strictEqual(peers.length, 1)
    }).pipe(Effect.provide(oneConnection()))
  )

  it.live("nobody waits in line for longer than its own bound, and who leaves it is told the limit", () =>
    Effect.gen(function* () {
      const { origin } = yield* occupied
      const [took, error] = yield* Effect.timed(Effect.flip(exchange(origin, collector())))
      assert.deepInclude(error, { phase: "connect", reason: "busy", limit: 1 })
      assert.isBelow(Duration.toMillis(took), 2_000)
    }).pipe(Effect.provide(oneConnection({ queueTimeoutMs: 60 })))
  )

  it.live("beyond the end of the line an exchange is refused at once, and who stands in it keeps the place", () =>
    Effect.gen(function* () {
      const { occupant, origin } = yield* occupied
      const sink = collector()
      const waiting = yield* Effect.forkChild(exchange(origin, sink))
      yield* Effect.yieldNow
      const [took, refusal] = yield* Effect.timed(failure(origin, { headersWithinMs: 60_000 }))
      assert.deepStrictEqual(refusal, ["connect", "busy"])
      assert.isBelow(Duration.toMillis(took), 2_000)
      yield* Fiber.interrupt(occupant)
      yield* Fiber.join(waiting)
      assert.strictEqual(sink.body.toString(), "ok")
    }).pipe(Effect.provide(oneConnection({ waitingPerOrigin: 1, queueTimeoutMs: 20_000 })))
  )

  it.live("who leaves the line makes room in it", () =>
    Effect.gen(function* () {
      const { origin } = yield* occupied
      const waiting = yield* Effect.forkChild(exchange(origin, collector()))
      yield* Effect.yieldNow
      yield* Fiber.interrupt(waiting)
      const [took, refusal] = yield* Effect.timed(failure(origin, { headersWithinMs: 100 }))
      assert.deepStrictEqual(refusal, ["connect", "busy"])
      assert.isAtLeast(Duration.toMillis(took), 90)
    }).pipe(Effect.provide(oneConnection({ waitingPerOrigin: 1 })))
  )

  it.live(
    "who leaves knows whether the server can have had any of the request: not in the line, not in the handshake",
    () =>
      Effect.gen(function* () {
        const upstream = yield* Upstream
        const start = (origin: string) =>
          upstream.exchangeUnsafe(
            {
              origin,
              method: "GET",
              target: "/",
              headers: [],
              body: null,
              headersWithinMs: 5_000,
              idleWithinMs: 5_000
            },
            collector(),
            () => assert.fail("it was cancelled")
          )
        const arrived = yield* Deferred.make<void>()
        const { origin } = yield* serve(async (peer) => {
          await peer.request()
          Deferred.doneUnsafe(arrived, Effect.void)
        })
        const sent = start(origin)
        const waiting = start(origin)
        yield* Deferred.await(arrived)
        assert.deepStrictEqual([waiting(), sent()], [false, true])

        const { peers, secureOrigin } = yield* serve(() => {})
        const connecting = start(secureOrigin)
        yield* eventually(
          Effect.sync(() => peers.length),
          (count) => count === 1
        )
        assert.isFalse(connecting())
        yield* left(peers[0])
      }).pipe(Effect.provide(oneConnection()))
  )

  it.live("one origin's line is not another's", () =>
    Effect.gen(function* () {
      const { origin } = yield* occupied
      const other = yield* serve(keepAnswering)
      assert.deepStrictEqual(yield* failure(origin), ["connect", "busy"])
      yield* exchange(other.origin, collector())
    }).pipe(Effect.provide(oneConnection({ waitingPerOrigin: 0 })))
  )

  it.live("the wait for a connection is not taken from the upstream's time", () =>
    Effect.gen(function* () {
      const first = yield* Deferred.make<Peer>()
      const { origin } = yield* serve(async (peer) => {
        await peer.request()
        Deferred.doneUnsafe(first, Effect.succeed(peer))
        await peer.request()
        await Effect.runPromise(Effect.sleep(1_500))
        await peer.write(answer("second"))
      })
      const one = yield* Effect.forkChild(exchange(origin, collector()))
      const peer = yield* Deferred.await(first)
      const next = yield* Effect.forkChild(exchange(origin, collector(), { headersWithinMs: 3_000 }))
      yield* Effect.sleep(2_000)
      yield* Effect.promise(() => peer.write(answer("first")))
      yield* Fiber.join(one)
      yield* Fiber.join(next)
    }).pipe(Effect.provide(oneConnection()))
  )

  it.live("a lost connection makes room for who waits", () =>
    Effect.gen(function* () {
      const first = yield* Deferred.make<void>()
      const { origin } = yield* serve(async (peer) => {
        await peer.request()
        if (peer.index === 0) Deferred.doneUnsafe(first, Effect.void)
        else await peer.write(answer("second"))
      })
      const one = yield* Effect.forkChild(exchange(origin, collector()))
      yield* Deferred.await(first)
      const sink = collector()
      const next = yield* Effect.forkChild(exchange(origin, sink))
      yield* Effect.yieldNow
      yield* Fiber.interrupt(one)
      yield* Fiber.join(next)
      assert.strictEqual(sink.body.toString(), "second")
    }).pipe(Effect.provide(oneConnection()))
  )

  it.live("closing lets running exchanges finish", () =>
    Effect.gen(function* () {
      const arrived = yield* Deferred.make<Peer>()
      const { origin } = yield* serve(async (peer) => {
        await peer.request()
        await peer.write(`${head(200, ["content-length", "4"])}ha`)
        Deferred.doneUnsafe(arrived, Effect.succeed(peer))
      })
      const door = yield* opened(UpstreamHttp.layer)
      const sink = collector()
      const running = yield* Effect.forkChild(Effect.provide(exchange(origin, sink), door.services))
      const peer = yield* Deferred.await(arrived)
      const closing = yield* Effect.forkChild(door.close)
      yield* Effect.yieldNow
      yield* Effect.promise(() => peer.write("lf"))
      yield* Fiber.join(running)
      yield* Fiber.join(closing)
      assert.strictEqual(sink.body.toString(), "half")
      yield* left(peer)
    })
  )

  it.live("closing refuses who still waits at the deadline", () =>
    Effect.gen(function* () {
      const arrived = yield* Deferred.make<void>()
      const { origin } = yield* serve(async (peer) => {
        await peer.request()
        Deferred.doneUnsafe(arrived, Effect.void)
      })
      const door = yield* opened(oneConnection({ drainTimeout: "50 millis" }))
      const running = yield* Effect.forkChild(Effect.provide(failure(origin), door.services))
      yield* Deferred.await(arrived)
      const waiting = yield* Effect.forkChild(Effect.provide(failure(origin), door.services))
      yield* Effect.yieldNow
      yield* door.close
      assert.deepStrictEqual(yield* Fiber.join(running), ["headers", "reset"])
      assert.deepStrictEqual(yield* Fiber.join(waiting), ["connect", "refused"])
      assert.deepStrictEqual(yield* Effect.provide(failure(origin), door.services), ["connect", "refused"])
    })
  )

  it.live("closing cuts what runs beyond the deadline, and what is idle at once", () =>
    Effect.gen(function* () {
      const { origin, peers } = yield* serve(keepAnswering)
      const arrived = yield* Deferred.make<void>()
      const silent = yield* serve(async (peer) => {
        await peer.request()
        Deferred.doneUnsafe(arrived, Effect.void)
      })
      const door = yield* opened(UpstreamHttp.layerWith({ drainTimeout: "50 millis" }))
      yield* Effect.provide(exchange(origin, collector()), door.services)
      const running = yield* Effect.forkChild(Effect.provide(failure(silent.origin), door.services))
      yield* Deferred.await(arrived)
      yield* door.close
      yield* left(peers[0])
      assert.deepStrictEqual(yield* Fiber.join(running), ["headers", "reset"])
    })
  )

  it.live("a caller whose requests stay unanswered holds a quarter of the connections; others find theirs", () =>
    Effect.gen(function* () {
      const asked = yield* Deferred.make<void>()
      let silent = 0
      const { origin } = yield* serve(async (peer) => {
        for (;;) {
          const request = await peer.request()
          if (request.startsWith("GET /other")) await peer.write(answer("ok"))
          else if (++silent === 2) Deferred.doneUnsafe(asked, Effect.void)
        }
      })
      const greedy = { caller: "greedy", target: "/silent" }
      const running = yield* Effect.forEach([1, 2], () => Effect.forkScoped(exchange(origin, collector(), greedy)))
      yield* Deferred.await(asked)
      const error = yield* Effect.flip(exchange(origin, collector(), greedy))
      assert.deepInclude(error, { phase: "connect", reason: "busy", limit: 2, whose: "caller" })
      for (const caller of ["other", undefined]) {
        const sink = collector()
        yield* exchange(origin, sink, { caller, target: "/other" })
        assert.strictEqual(sink.body.toString(), "ok")
      }
      const waiting = yield* Effect.forkScoped(exchange(origin, collector(), { ...greedy, target: "/other" }))
      yield* Fiber.interrupt(running[0]!)
      yield* Fiber.join(waiting)
    }).pipe(
      Effect.provide(
        UpstreamHttp.layerWith({ connectionsPerOrigin: 8, queueTimeoutMs: 1_000, drainTimeout: "1 milli" })
      )
    )
  )
})

const opened = (door: Layer.Layer<Upstream>) =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const services: Context.Context<Upstream> = yield* Layer.buildWithScope(door, scope)
    return { services, close: Scope.close(scope, Exit.void) }
  })

const oneConnection = (options: Partial<UpstreamHttp.Options> = {}) =>
  UpstreamHttp.layerWith({ connectionsPerOrigin: 1, drainTimeout: "1 milli", ...options })

/** A server whose first connection is taken by an exchange that stays; on others it answers. */
const occupied = Effect.gen(function* () {
  const taken = yield* Deferred.make<void>()
  const { origin } = yield* serve(async (peer) => {
    if (peer.index > 0) return keepAnswering(peer)
    await peer.request()
    Deferred.doneUnsafe(taken, Effect.void)
  })
  const occupant = yield* Effect.forkScoped(exchange(origin, collector()))
  yield* Deferred.await(taken)
  return { origin, occupant }
})

const keepAnswering: Script = async (peer) => {
  for (;;) {
    await peer.request()
    await peer.write(answer("ok"))
  }
}
