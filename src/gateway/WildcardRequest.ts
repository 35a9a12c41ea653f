import { Clock, Effect, Result } from "effect"
import { Upstream } from "../services/Upstream.ts"
import * as Billing from "./Billing.ts"
import { Destinations } from "./Destination.ts"
import type { GatewayError } from "./GatewayError.ts"
import { queueFull } from "./GovernedRequest.ts"
import type { KeyRecord } from "./KeyRecord.ts"
import * as Facts from "./model/Facts.ts"
import * as PublicLocation from "./PublicLocation.ts"
import type * as Request from "./Request.ts"
import * as StreamedRequest from "./StreamedRequest.ts"
import type { Wildcard } from "./Target.ts"
import { UsageLog } from "./UsageLog.ts"
import * as UsageRecord from "./UsageRecord.ts"

/**
 * What no other route took. Path and query go on as they came, bodies stream through both ways up to the settings'
 * limits; there is no policy, no limit and no guardrail (reference §1.3).
 */
export interface WildcardRequests {
  /** With a gateway key: its upstream credential, and a record of the status alone. */
  readonly keyed: (
    request: Request.Request,
    target: Wildcard,
    key: KeyRecord,
    outcome: Request.Outcome
  ) => Request.HungUp
  /** From a trusted ingress, for a browser that has no key: the provider's own credential, and no record. */
  readonly open: (request: Request.Request, target: Wildcard, outcome: Request.Outcome) => Request.HungUp
}

export const make: Effect.Effect<WildcardRequests, never, Destinations | Upstream | UsageLog> = Effect.gen(
  function* () {
    const destinations = yield* Destinations
    const upstream = yield* Upstream
    const usageLog = yield* UsageLog
    const clock = yield* Clock.Clock
    const now = () => clock.currentTimeMillisUnsafe()

    const keyed: WildcardRequests["keyed"] = (request, target, key, outcome) => {
      if (!usageLog.hasRoom()) {
        outcome.refused(queueFull)
        return ignored
      }
      const settle: StreamedRequest.Streamed["settle"] = (came, then) => {
        const record = UsageRecord.of({ ...unaccounted, ...came, request, target, key, endedAt: now() })
        usageLog.settle(undefined, Billing.nothing.settled, record, () => {
          try {
            then()
          } catch (defect) {
            outcome.failed(defect)
          }
        })
      }
      const refuse = (error: GatewayError) => settle({ status: error.status, error }, () => outcome.refused(error))
      const destination = destinations.find(target, key)
      if (Result.isFailure(destination)) {
        refuse(destination.failure)
        return ignored
      }
      const streamed = { request, target, key, destination: destination.success, settle }
      return StreamedRequest.run(upstream, streamed, now, outcome)
    }

    const open: WildcardRequests["open"] = (request, target, outcome) => {
      const destination = destinations.find(target, undefined)
      if (Result.isFailure(destination)) {
        outcome.refused(destination.failure)
        return ignored
      }
      const headers = PublicLocation.shown(request.wire.headers, destination.success.origin)
      const streamed = { request, target, key: undefined, destination: destination.success, headers }
      return StreamedRequest.run(upstream, streamed, now, outcome)
    }

    return { keyed, open }
  }
)

const ignored: Request.HungUp = () => {}

const unaccounted = {
  facts: Facts.none,
  policy: undefined,
  denial: undefined,
  guardrails: undefined,
  bill: Billing.nothing,
  provider: "upstream",
  fallbackCount: 0
} as const
