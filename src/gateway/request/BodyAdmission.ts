import { Context, Effect, Layer, Metric } from "effect"
import * as CallbackMetrics from "../../process/CallbackMetrics.ts"
import { GatewaySettings } from "../../process/GatewaySettings.ts"
import { type BodyLease, BodyLeases, type LimitOwner } from "../../services/BodyLeases.ts"
import { GatewayError } from "../GatewayError.ts"

/** Limits the memory for request bodies, in total and for each caller. A body beyond a limit is refused at once. */
export class BodyAdmission extends Context.Service<
  BodyAdmission,
  {
    /** `caller` is a key id or an IP address. */
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

export const refusal = (whose: LimitOwner, body: "request" | "response"): GatewayError =>
  new GatewayError({
    code: "gateway_overloaded",
    message:
      whose === "caller"
        ? `This key, or this address, uses its whole share of the gateway's memory for bodies (at most a quarter). There is no room for this ${body}. Send fewer requests at once.`
        : `The gateway's memory for bodies is full. There is no room for this ${body}. Try again shortly.`,
    retryAfterSeconds: 1
  })

const bufferedRequests = Metric.gauge("gateway_buffered_requests", { description: "Bodies in memory" })
const bufferedBytes = Metric.gauge("gateway_buffered_body_bytes", { description: "Bytes of bodies in memory" })
