import type { Upstream } from "../services/Upstream.ts"
import * as Billing from "./Billing.ts"
import type { Destination } from "./Destination.ts"
import * as Forward from "./Forward.ts"
import { GatewayError } from "./GatewayError.ts"
import { strictest } from "./model/BodyLimit.ts"
import * as Outbound from "./Outbound.ts"
import * as Request from "./Request.ts"
import * as RequestBody from "./RequestBody.ts"
import type { Target } from "./Target.ts"
import type { BodyFailure, Wire } from "./Wire.ts"

/**
 * Direct mode with a credential that is the client's own: the upstream decides about it. No key, policy, limits or
 * record; the body is not looked into and streams through, up to the route's limit.
 */
export const run = (
  upstream: Upstream["Service"],
  request: Request.Request,
  target: Target,
  destination: Destination,
  now: () => number,
  outcome: Request.Outcome
): Request.HungUp => {
  const { wire } = request
  const { config } = target
  if (!config.enabled) {
    outcome.refused(disabledRoute)
    return () => {}
  }
  const limit = strictest(config.maxRequestBodyBytes, null)
  const body = wire.method === "POST" ? streamed(wire, limit.bytes, config.timeoutMs) : undefined
  const sentAt = now()
  const passage: Forward.Passage = {
    exchange: Outbound.exchange({
      request,
      target,
      config,
      destination,
      key: undefined,
      body: body?.bytes ?? null,
      read: false
    }),
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
  }
  const conclude = ({ finish, passed }: Forward.Settleable) => {
    if (passed.error !== undefined && !passed.headSent) Request.refuse(request, passed.error, [], now())
    else finish()
    outcome.ended({
      status: passed.status ?? passed.error?.status ?? Request.clientClosed,
      error: passed.error,
      streamed: false,
      aborted: passed.headSent && !passed.whole,
      bill: Billing.nothing,
      upstreamMs: passed.endedAt - sentAt
    })
  }
  return Forward.pass(upstream, wire, passage, conclude, outcome.failed)
}

export const disabledRoute = new GatewayError({
  code: "disabled_route",
  message: "Route is disabled by gateway policy."
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
