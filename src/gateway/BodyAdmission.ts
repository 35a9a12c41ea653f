import { Context, Effect, Layer, Metric } from "effect"
import { GatewaySettings } from "./model/Settings.ts"
import * as Series from "./Series.ts"
import type { BodyLease } from "./Wire.ts"

/**
 * How much memory request bodies may take, for the whole process (reference §12): a number of bodies, and a sum of
 * bytes. Nothing queues: what has no room is refused at once.
 */
export class BodyAdmission extends Context.Service<BodyAdmission, { readonly lease: () => BodyLease }>()(
  "svc/gateway/BodyAdmission"
) {
  static readonly layer = Layer.effect(
    BodyAdmission,
    Effect.gen(function* () {
      const { maxBufferedRequests, maxInflightBufferBytes } = yield* GatewaySettings
      const series = yield* Series.make
      let requests = 0
      let bytes = 0
      series.gauge(bufferedRequests, () => requests)
      series.gauge(bufferedBytes, () => bytes)
      const lease = (): BodyLease => {
        let held = 0
        let counted = false
        return {
          grow: (more) => {
            if (!counted && requests >= maxBufferedRequests) return false
            if (bytes + more > maxInflightBufferBytes) return false
            if (!counted) requests++
            counted = true
            held += more
            bytes += more
            return true
          },
          release: () => {
            if (counted) requests--
            bytes -= held
            counted = false
            held = 0
          }
        }
      }
      return BodyAdmission.of({ lease })
    })
  )
}

const bufferedRequests = Metric.gauge("gateway_buffered_requests")
const bufferedBytes = Metric.gauge("gateway_buffered_body_bytes")
