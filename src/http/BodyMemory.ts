import { Context, Effect, Layer, Option, Schema } from "effect"
import { HttpServerRequest } from "effect/http"
import { BodyLeases } from "../services/BodyLeases.ts"
import * as FairShare from "../services/FairShare.ts"

/** The byte limit is four times the maximum size of a request body (16 MiB). */
const capacity = { requests: 1_024, bytes: 64 * 1024 * 1024 }

export class NoRoom extends Schema.TaggedError<NoRoom>()("NoRoom", {
  whose: Schema.Literals(["process", "caller"])
}) {}

/** Limits the memory of request bodies. One client address may use at most a quarter of that memory. */
export class BodyMemory extends Context.Service<
  BodyMemory,
  {
    /** Runs `work` with memory for the request's body reserved, at most `maxBytes`. */
    readonly withReservation: (
      maxBytes: number
    ) => <A, E, R>(
      work: Effect.Effect<A, E, R>
    ) => Effect.Effect<A, E | NoRoom, R | HttpServerRequest.HttpServerRequest>
  }
>()("svc/http/BodyMemory") {
  static readonly layer = Layer.sync(BodyMemory, () => make())
}

export const make = (): BodyMemory["Service"] => {
  const leases = new BodyLeases(capacity)
  return BodyMemory.of({
    withReservation: (maxBytes) => (work) =>
      Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers, remoteAddress }) => {
        const bytes = bytesOf(headers, maxBytes)
        if (bytes === 0) return work
        const lease = leases.lease(FairShare.callerOfAddress(Option.getOrElse(remoteAddress, () => "")))
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

/** A body of unknown length reserves `maxBytes`. */
const bytesOf = (headers: Readonly<Record<string, string | undefined>>, maxBytes: number): number =>
  headers["transfer-encoding"] === undefined ? Math.min(maxBytes, Number(headers["content-length"] ?? 0)) : maxBytes
