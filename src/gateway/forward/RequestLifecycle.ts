import * as GatewayError from "../GatewayError.ts"
import type { MeterReading } from "../limits/Meters.ts"
import * as RateLimitHeaders from "../limits/RateLimitHeaders.ts"
import type { Request } from "../request/Request.ts"
import type { KeyRecord } from "../snapshot/KeyRecord.ts"
import type { RequestOutcome } from "../telemetry/RequestOutcome.ts"
import * as Billing from "../usage/Billing.ts"

/** How a request tells its end: one of these, once. */
export interface RequestLifecycle {
  /** It came with this key, which may be refused yet. */
  readonly keyFound: (key: KeyRecord) => void
  /** It is a request of this key: counts it among those that run until it ends, and returns how many those are. */
  readonly startRunning: (keyId: string) => number
  /** It has become a stream. */
  readonly startStreaming: () => void
  readonly end: (ended: RequestOutcome) => void
  /** Nobody is known to have asked: no record is kept. */
  readonly refuse: (error: GatewayError.GatewayError) => void
  readonly fail: (defect: unknown) => void
}

/** To be called when the client hangs up. */
export type OnDisconnect = () => void

/** The status of a request whose client left before an answer began: for records and metrics, never sent. */
export const clientClosedStatus = 499

/** How it ends when the client hangs up before anything was decided. */
export const clientClosedOutcome: RequestOutcome = {
  status: clientClosedStatus,
  error: undefined,
  streamed: false,
  aborted: false,
  bill: Billing.unbilled
}

/** What the gateway puts on every answer. */
export const responseHeaders = (
  { requestId }: Request,
  readings: ReadonlyArray<MeterReading>,
  now: number
): ReadonlyArray<readonly [string, string]> => [["x-request-id", requestId], ...RateLimitHeaders.fields(readings, now)]

/** Answers with a refusal, in the shape that the caller's SDK understands. */
export const sendRefusal = (
  request: Request,
  error: GatewayError.GatewayError,
  readings: ReadonlyArray<MeterReading>,
  now: number
): void => {
  const retry = error.retryAfterSeconds
  const inVain = isPointlessToRetry(error)
  const own = [
    ["content-type", "application/json"],
    ["cache-control", "private, no-store"],
    ...responseHeaders(request, readings, now),
    ...(request.family === "b" ? [["request-id", request.requestId] as const] : []),
    // a client that knows this header alone would sit out a whole day or month without a word to its user
    ...(retry === undefined || inVain ? [] : [["retry-after", String(retry)] as const]),
    ...(inVain ? [["x-should-retry", "false"] as const] : [])
  ]
  request.wire.respond(error.status, own.flat(), GatewayError.errorBody(error, request.family, request.requestId))
}

/**
 * SDKs, and programs around them, try again on their own, within seconds. The same request is refused again then where
 * the refusal is of its sender, or of what it asks for, or where its limit begins anew only tomorrow.
 */
const isPointlessToRetry = ({ retryAfterSeconds, status }: GatewayError.GatewayError): boolean =>
  callerErrorStatuses.has(status) && (retryAfterSeconds ?? Number.POSITIVE_INFINITY) > maxSdkRetrySeconds

const callerErrorStatuses: ReadonlySet<number> = new Set([401, 402, 403, 429])

/** What the SDKs wait for at the most. */
const maxSdkRetrySeconds = 60
