import { Effect } from "effect"
import { type Exchange, type Sink, Upstream } from "../../src/services/Upstream.ts"
import { collector } from "./Collector.ts"
import type { Peer } from "./ScriptedServer.ts"

/** A plain exchange through the door at hand, unless `options` say otherwise. */
export const exchange = (origin: string, sink: Sink, options: Partial<Exchange> = {}) =>
  Effect.gen(function* () {
    const upstream = yield* Upstream
    yield* upstream.exchange(
      {
        origin,
        method: "GET",
        target: "/",
        headers: [],
        body: null,
        headersWithinMs: 5_000,
        idleWithinMs: 5_000,
        ...options
      },
      sink
    )
  })

/** The phase and reason of an exchange that has to fail. */
export const failure = (origin: string, options: Partial<Exchange> = {}) =>
  Effect.map(Effect.flip(exchange(origin, collector(), options)), (error) => [error.phase, error.reason])

/** The server's own view: the connection is gone. */
export const left = (peer: Peer | undefined) => Effect.promise(async () => peer?.closed)
