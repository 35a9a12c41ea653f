import { Context, Effect, Layer, Metric } from "effect"
import * as CallbackMetrics from "../../process/CallbackMetrics.ts"
import { GatewaySettings } from "../../process/GatewaySettings.ts"
import { type BodyLease, BodyLeases, type LimitOwner } from "../../services/BodyLeases.ts"
import { GatewayError } from "../GatewayError.ts"

/**
 * How much memory request bodies may take: a number of bodies, and a sum of bytes, for the whole process and for each
 * caller a share of both. Nothing queues: what has no room is refused at once.
 */
export class BodyAdmission extends Context.Service<
  BodyAdmission,
  {
    /** Room for a body of `caller`: the id of its key, or its address. */
    readonly lease: (caller: string) => BodyLease
  }
>()("svc/gateway/BodyAdmission") {
  static readonly layer = Layer.effect(
    BodyAdmission,
    Effect.gen(function* () {
      const { maxBufferedRequests, maxInflightBufferBytes } = yield* GatewaySettings
      const series = yield* CallbackMetrics.make
      const leases = new BodyLeases({ requests: maxBufferedRequests, bytes: maxInflightBufferBytes })
      series.gauge(bufferedRequests, () => leases.usage.requests)
      series.gauge(bufferedBytes, () => leases.usage.bytes)
      return BodyAdmission.of({ lease: (caller) => leases.lease(caller) })
    })
  )
}

/** Says whose room is full: for one's own share there is something that a caller can do. */
export const refusal = (whose: LimitOwner, what: "request" | "answer"): GatewayError =>
  new GatewayError({
    code: "gateway_overloaded",
    message:
      whose === "caller"
        ? `This key, or this address, holds its share of the room that the gateway has for bodies (a quarter, and less where others hold much), and has none for this ${what}. Send fewer requests at once.`
        : `The gateway holds as many bodies as it may, and has no room for this ${what}. Try again shortly.`,
    retryAfterSeconds: 1
  })

const bufferedRequests = Metric.gauge("gateway_buffered_requests", { description: "Bodies that are in memory" })
const bufferedBytes = Metric.gauge("gateway_buffered_body_bytes", { description: "Bytes of bodies that are in memory" })
