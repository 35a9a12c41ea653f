import { Context, Effect, Layer, Metric } from "effect"
import * as Share from "../services/Share.ts"
import { GatewayError } from "./GatewayError.ts"
import { GatewaySettings } from "./model/Settings.ts"
import * as Series from "./Series.ts"
import type { BodyLease, NoRoomOf } from "./Wire.ts"

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
      const series = yield* Series.make
      const all: Held = { requests: 0, bytes: 0 }
      const most: Held = { requests: maxBufferedRequests, bytes: maxInflightBufferBytes }
      const share: Held = { requests: Share.of(most.requests), bytes: Share.of(most.bytes) }
      const callers = new Map<string, Held>()
      series.gauge(bufferedRequests, () => all.requests)
      series.gauge(bufferedBytes, () => all.bytes)

      const lease = (caller: string): BodyLease => {
        let held = 0
        /** What all bodies of the caller hold, while this one is among them. */
        let theirs: Held | undefined
        return {
          grow: (more) => {
            const first = theirs === undefined ? 1 : 0
            const ours = theirs ?? callers.get(caller) ?? { requests: 0, bytes: 0 }
            if (all.requests + first > most.requests || all.bytes + more > most.bytes) return "process"
            // the only body of a caller may be as large as its route allows
            const alone = ours.requests + first === 1
            if (!alone && (ours.requests + first > share.requests || ours.bytes + more > share.bytes)) return "caller"
            if (theirs === undefined) callers.set(caller, ours)
            theirs = ours
            held += more
            all.requests += first
            all.bytes += more
            ours.requests += first
            ours.bytes += more
            return undefined
          },
          release: () => {
            if (theirs === undefined) return
            all.requests--
            all.bytes -= held
            theirs.requests--
            theirs.bytes -= held
            if (theirs.requests === 0) callers.delete(caller)
            theirs = undefined
            held = 0
          }
        }
      }
      return BodyAdmission.of({ lease })
    })
  )
}

interface Held {
  requests: number
  bytes: number
}

/** Says whose room is full: for one's own share there is something that a caller can do. */
export const refusal = (whose: NoRoomOf, what: "request" | "answer"): GatewayError =>
  new GatewayError({
    code: "gateway_overloaded",
    message:
      whose === "caller"
        ? `This key, or this address, holds its share (a quarter) of the room that the gateway has for bodies, and has none for this ${what}. Send fewer requests at once.`
        : `The gateway holds as many bodies as it may, and has no room for this ${what}. Try again shortly.`,
    retryAfterSeconds: 1
  })

const bufferedRequests = Metric.gauge("gateway_buffered_requests")
const bufferedBytes = Metric.gauge("gateway_buffered_body_bytes")
