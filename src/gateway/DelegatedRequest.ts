import { Effect } from "effect"
import * as Billing from "./Billing.ts"
import type { Destination } from "./Destination.ts"
import * as Forward from "./Forward.ts"
import { GatewayError } from "./GatewayError.ts"
import * as Headers from "./Headers.ts"
import * as Request from "./Request.ts"
import * as RequestBody from "./RequestBody.ts"
import type { Target } from "./Target.ts"
import type { Ended } from "./Telemetry.ts"
import type { BodyFailure, Wire } from "./Wire.ts"

/**
 * Direct mode with a credential that is the client's own: the upstream decides about it. No key, policy, limits or
 * record; the body is not looked into and streams through, up to the route's limit.
 */
export const run = Effect.fnUntraced(function* (
  request: Request.Request,
  target: Target,
  { credential, origin, ownHeader, style }: Destination,
  now: () => number
) {
  const { wire } = request
  const { config } = target
  if (!config.enabled) {
    return yield* new GatewayError({ code: "disabled_route", message: "Route is disabled by gateway policy." })
  }
  const limit = RequestBody.strictest(config.maxRequestBodyBytes, null)
  const body = wire.method === "POST" ? streamed(wire, limit.bytes, config.timeoutMs) : undefined
  const sentAt = now()
  const { finish, passed } = yield* Effect.uninterruptible(
    Forward.pass(wire, {
      exchange: {
        origin,
        method: wire.method,
        target: target.target,
        headers: Headers.forUpstream(wire.headers, {
          credential,
          style,
          ownHeader,
          own: Request.ownHeaders(request, undefined),
          plainAnswer: false
        }),
        body: body?.bytes ?? null,
        headersWithinMs: config.timeoutMs,
        idleWithinMs: config.timeoutMs
      },
      reading: { _tag: "Blind" },
      maxResponseBytes: config.maxResponseBodyBytes,
      answerHeaders: Request.answerHeaders(request, [], now()),
      onAnswer: () => {},
      mayFallBack: false,
      bodyRefusal: () => {
        const failure = body?.failure()
        return failure === undefined ? undefined : RequestBody.refusal(failure, limit, config.timeoutMs)
      },
      now
    })
  )
  if (passed.error !== undefined && !passed.headSent) Request.refuse(request, passed.error, [], now())
  else finish()
  const ended: Ended = {
    status: passed.status ?? passed.error?.status ?? Request.clientClosed,
    error: passed.error,
    streamed: false,
    aborted: passed.headSent && !passed.whole,
    bill: Billing.nothing,
    upstreamMs: passed.endedAt - sentAt
  }
  return ended
})

/** The body as it comes, and afterwards why it came to no good end. */
const streamed = (wire: Wire, maxBytes: number, idleMs: number) => {
  let failed: BodyFailure | undefined
  return {
    failure: () => failed,
    bytes: wire.streamBody({
      maxBytes,
      idleMs,
      onFailure: (failure) => {
        failed = failure
      }
    })
  }
}
