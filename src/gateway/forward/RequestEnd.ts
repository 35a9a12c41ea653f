import * as GatewayError from "../GatewayError.ts"
import type { Reading } from "../limits/Meters.ts"
import * as RateLimitHeaders from "../limits/RateLimitHeaders.ts"
import type { Request } from "../request/Request.ts"
import type { KeyRecord } from "../snapshot/KeyRecord.ts"
import type { Ended } from "../telemetry/Ended.ts"
import * as Billing from "../usage/Billing.ts"

/** How a request tells its end: one of these, once. */
export interface RequestEnd {
  /** It came with this key, which may be refused yet. */
  readonly known: (key: KeyRecord) => void
  /** It is a request of this key: counts it among those that run until it ends, and returns how many those are. */
  readonly runs: (keyId: string) => number
  /** It has become a stream. */
  readonly streams: () => void
  readonly ended: (ended: Ended) => void
  /** Nobody is known to have asked: no record is kept. */
  readonly refused: (error: GatewayError.GatewayError) => void
  readonly failed: (defect: unknown) => void
}

/** To be called when the client hangs up. */
export type HungUp = () => void

/** The status of a request whose client left before an answer began: for records and metrics, never sent. */
export const clientClosed = 499

/** How it ends when the client hangs up before anything was decided. */
export const left: Ended = {
  status: clientClosed,
  error: undefined,
  streamed: false,
  aborted: false,
  bill: Billing.nothing
}

/** What the gateway puts on every answer. */
export const answerHeaders = (
  { requestId }: Request,
  readings: ReadonlyArray<Reading>,
  now: number
): ReadonlyArray<readonly [string, string]> => [["x-request-id", requestId], ...RateLimitHeaders.fields(readings, now)]

/** Answers with a refusal, in the shape that the caller's SDK understands. */
export const refuse = (
  request: Request,
  error: GatewayError.GatewayError,
  readings: ReadonlyArray<Reading>,
  now: number
): void => {
  const retry = error.retryAfterSeconds
  const inVain = isRetriedInVain(error)
  const own = [
    ["content-type", "application/json"],
    ["cache-control", "private, no-store"],
    ...answerHeaders(request, readings, now),
    ...(request.family === "b" ? [["request-id", request.requestId] as const] : []),
    // a client that knows this header alone would sit out a whole day or month without a word to its user
    ...(retry === undefined || inVain ? [] : [["retry-after", String(retry)] as const]),
    ...(inVain ? [["x-should-retry", "false"] as const] : [])
  ]
  request.wire.answer(error.status, own.flat(), GatewayError.body(error, request.family, request.requestId))
}

/**
 * SDKs, and programs around them, try again on their own, within seconds. The same request is refused again then where
 * the refusal is of its sender, or of what it asks for, or where its limit begins anew only tomorrow.
 */
const isRetriedInVain = ({ retryAfterSeconds, status }: GatewayError.GatewayError): boolean =>
  decided.has(status) && (retryAfterSeconds ?? Number.POSITIVE_INFINITY) > longestRetrySeconds

const decided: ReadonlySet<number> = new Set([401, 402, 403, 429])

/** What the SDKs wait for at the most. */
const longestRetrySeconds = 60
