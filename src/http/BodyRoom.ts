import { Context, Effect, Layer, Option, Schema } from "effect"
import { HttpServerRequest } from "effect/http"
import { BodyLeases } from "../services/BodyLeases.ts"
import * as Share from "../services/Share.ts"

/** Four of the largest bodies that operators send. */
const most = { requests: 1_024, bytes: 64 * 1024 * 1024 }

/** The process, or the caller's address, holds as many bodies as it may. */
export class NoRoom extends Schema.TaggedError<NoRoom>()("NoRoom", {
  whose: Schema.Literals(["process", "caller"])
}) {}

/** Bounds the memory of all bodies that are read whole. An address may hold a quarter of it. */
export class BodyRoom extends Context.Service<
  BodyRoom,
  {
    /** Runs `work`, which reads at most `maxBytes` of the request's body, where there is room for that. */
    readonly holding: (
      maxBytes: number
    ) => <A, E, R>(
      work: Effect.Effect<A, E, R>
    ) => Effect.Effect<A, E | NoRoom, R | HttpServerRequest.HttpServerRequest>
  }
>()("svc/http/BodyRoom") {
  static readonly layer = Layer.sync(BodyRoom, () => make())
}

export const make = (): BodyRoom["Service"] => {
  const leases = new BodyLeases(most)
  return BodyRoom.of({
    holding: (maxBytes) => (work) =>
      Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers, remoteAddress }) => {
        const bytes = bytesOf(headers, maxBytes)
        if (bytes === 0) return work
        const lease = leases.lease(Share.callerAt(Option.getOrElse(remoteAddress, () => "")))
        return Effect.acquireUseRelease(
          Effect.suspend(() => {
            const whose = lease.grow(bytes)
            return whose === undefined ? Effect.void : Effect.fail(new NoRoom({ whose }))
          }),
          () => work,
          () => Effect.sync(lease.release)
        )
      })
  })
}

/** The number of bytes that a body may have. One that does not say how long it is counts as the longest. */
const bytesOf = (headers: Readonly<Record<string, string | undefined>>, maxBytes: number): number =>
  headers["transfer-encoding"] === undefined ? Math.min(maxBytes, Number(headers["content-length"] ?? 0)) : maxBytes
