import * as Headers from "../../http/Headers.ts"
import type { Reader } from "../../policy/facts/AnswerHeaders.ts"
import type { KeyPolicy } from "../../policy/KeyPolicy.ts"
import type { Routed } from "../../policy/Routing.ts"
import { ofAnswers, ofRequests } from "../../policy/routes/BodyLimit.ts"
import type { Upstream } from "../../services/Upstream.ts"
import * as GatewayError from "../GatewayError.ts"
import type { Reading } from "../limits/Meters.ts"
import type * as Request from "../request/Request.ts"
import * as RequestBody from "../request/RequestBody.ts"
import type { BodyFailure, Wire } from "../request/Wire.ts"
import type { KeyRecord } from "../snapshot/KeyRecord.ts"
import type * as Tracing from "../telemetry/Tracing.ts"
import * as Billing from "../usage/Billing.ts"
import type { Destination } from "./Destination.ts"
import * as Forward from "./Forward.ts"
import * as GuardedAnswer from "./GuardedAnswer.ts"
import * as Outbound from "./Outbound.ts"
import * as PublicLocation from "./PublicLocation.ts"
import * as RequestEnd from "./RequestEnd.ts"

/** How it came out, before the client has the end of its answer. */
export interface Came {
  readonly status: number
  readonly error: GatewayError.GatewayError | undefined
  readonly upstreamMs?: number
  /** The client has seen the upstream's status and headers. */
  readonly headSent?: boolean
}

export interface Admitted {
  readonly policy: Pick<KeyPolicy, "max_request_body_bytes" | "max_response_body_bytes">
  readonly readings: ReadonlyArray<Reading>
}

export interface Streamed {
  readonly request: Request.Request
  readonly target: Routed
  readonly destination: Destination
  readonly key: KeyRecord | undefined
  /** In the place of the client's stream: its body, which was read. */
  readonly read?: Buffer | undefined
  /** The upstream has begun to answer: it has the body. */
  readonly onAnswer?: () => void
  /** What a policy leaves of the route's limits, and what its counters show. Nothing, where no policy is asked. */
  readonly admitted?: Admitted
  /** What the client is shown of the answer's headers; all of them, where this is left out. */
  readonly headers?: Forward.Passage["headers"]
  readonly reader?: Reader
  /** Is shown the answer while it passes. */
  readonly watch?: Forward.AnswerWatch | undefined
  /** Reads the answer whole before the client sees any of it. */
  readonly judge?: GuardedAnswer.Judge | undefined
  /** Puts on record how it came out, and tells `then` when that is safe. Without one nothing is kept. */
  readonly settle?: (came: Came, then: () => void) => void
}

/**
 * A request whose content decides nothing any more: its body streams through, unless it was read, and so does the
 * answer, each up to the route's limit.
 */
export const run = (
  upstream: Upstream["Service"],
  streamed: Streamed,
  now: () => number,
  span: Tracing.Span,
  outcome: RequestEnd.RequestEnd
): RequestEnd.HungUp => {
  const { admitted = unasked, destination, headers, judge, key, reader, request, target, watch } = streamed
  const settle = streamed.settle ?? ((_, then) => then())
  const { wire } = request
  const { config } = target
  const { policy, readings } = admitted
  const limit = ofRequests(config, policy.max_request_body_bytes)
  const body = streamed.read === undefined && sendsBody(wire) ? passing(wire, limit.bytes, config.timeoutMs) : undefined
  const sentAt = now()
  const exchange = span.exchange("gateway.upstream", destination.base.origin)
  const passage: Forward.Passage = {
    exchange: Outbound.exchange({
      request,
      target,
      config,
      destination,
      key,
      body: streamed.read ?? body?.bytes ?? null,
      traceparent: exchange.traceparent,
      read: watch !== undefined || judge !== undefined
    }),
    credential: destination.credential,
    reading: { _tag: "Blind" },
    limits: ofAnswers(config, policy.max_response_body_bytes),
    // nothing hangs on the record of it
    endsByEvent: false,
    errorEvent: (error) => GatewayError.event(error, request.family, request.requestId),
    answerHeaders: RequestEnd.answerHeaders(request, readings, now()),
    ...(headers === undefined ? below(wire, target, destination) : { headers }),
    reader,
    onAnswer: streamed.onAnswer ?? (() => {}),
    mayFallBack: false,
    watch,
    bodyRefusal: () => {
      const failure = body?.failure()
      return failure === undefined ? undefined : RequestBody.refusal(failure, limit, config.timeoutMs)
    },
    now
  }
  const conclude = ({ finish, passed }: Forward.Settleable) => {
    exchange.end(passed.status ?? passed.withheld)
    const came: Came = {
      status: passed.status ?? passed.error?.status ?? RequestEnd.clientClosed,
      error: passed.error,
      upstreamMs: passed.endedAt - sentAt,
      headSent: passed.headSent
    }
    settle(came, () => {
      if (passed.error !== undefined && !passed.headSent) RequestEnd.refuse(request, passed.error, readings, now())
      else finish()
      outcome.ended({
        ...came,
        streamed: false,
        aborted: passed.headSent && !passed.whole,
        bill: Billing.nothing
      })
    })
  }
  return judge === undefined
    ? Forward.pass(upstream, wire, passage, conclude, outcome.failed)
    : GuardedAnswer.pass(upstream, wire, passage, judge, conclude, outcome.failed)
}

/** An upstream below a path of its host writes that path in its links. */
const below = (wire: Wire, { target }: Routed, { base }: Destination): Pick<Forward.Passage, "headers"> =>
  base.prefix === "" ? {} : { headers: PublicLocation.atGateway(wire.target, target, base) }

const unasked: Admitted = { policy: { max_request_body_bytes: null, max_response_body_bytes: null }, readings: [] }

/** A body is announced by its framing (RFC 9112 §6); a POST without any is sent on as one with an empty body. */
const sendsBody = (wire: Wire): boolean => wire.method === "POST" || bringsBody(wire)

export const bringsBody = ({ headers }: Wire): boolean =>
  Headers.get(headers, "transfer-encoding") !== undefined || Number(Headers.get(headers, "content-length") ?? 0) > 0

/** The body as it comes, and afterwards why it came to no good end. */
const passing = (wire: Wire, maxBytes: number, idleMs: number) => {
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
