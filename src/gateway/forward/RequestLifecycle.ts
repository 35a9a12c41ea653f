import type { MeterReading } from "../../state/limits/Meters.ts"
import * as GatewayError from "../GatewayError.ts"
import * as RateLimitHeaders from "../limits/RateLimitHeaders.ts"
import type { Request } from "../request/Request.ts"
import type { KeyRecord } from "../snapshot/KeyRecord.ts"
import type { RequestOutcome } from "../telemetry/RequestOutcome.ts"
import * as Billing from "../usage/Billing.ts"

/** Receives the progress of a request. Exactly one call of `end`, `refuse` or `fail` concludes the request. */
export interface RequestLifecycle {
  /** Called when the key is known. The request may still be refused. */
  readonly keyFound: (key: KeyRecord) => void
  /** Counts the request as running until it ends, and returns the number of running requests of the key. */
  readonly startRunning: (keyId: string) => number
  readonly startStreaming: () => void
  readonly end: (ended: RequestOutcome) => void
  /** Refuses without a usage record, because the key is unknown or no record can be kept. */
  readonly refuse: (error: GatewayError.GatewayError) => void
  readonly fail: (defect: unknown) => void
}

export type OnDisconnect = () => void

/** The status in records and metrics when the client disconnects before a response. It is never sent. */
export const clientClosedStatus = 499

export const clientClosedOutcome: RequestOutcome = {
  status: clientClosedStatus,
  error: undefined,
  streamed: false,
  aborted: false,
  bill: Billing.unbilled
}

export const responseHeaders = (
  { requestId }: Request,
  readings: ReadonlyArray<MeterReading>,
  now: number
): ReadonlyArray<readonly [string, string]> => [["x-request-id", requestId], ...RateLimitHeaders.fields(readings, now)]

/** Responds with an error in the format that the client's SDK parses. */
export const sendRefusal = (
  request: Request,
  error: GatewayError.GatewayError,
  readings: ReadonlyArray<MeterReading>,
  now: number
): void => {
  const retryAfter = error.retryAfterSeconds
  const isPointless = isPointlessToRetry(error)
  const headers = [
    ["content-type", "application/json"],
    ["cache-control", "private, no-store"],
    ...responseHeaders(request, readings, now),
    ...(request.family === "b" ? [["request-id", request.requestId] as const] : []),
    // SDKs wait as long as retry-after says. A wait of a day or a month would hide the error from the user.
    ...(retryAfter === undefined || isPointless ? [] : [["retry-after", String(retryAfter)] as const]),
    ...(isPointless ? [["x-should-retry", "false"] as const] : [])
  ]
  request.wire.respond(error.status, headers.flat(), GatewayError.errorBody(error, request.family, request.requestId))
}

/** SDKs retry within seconds. A retry cannot succeed if the caller is refused or the limit resets much later. */
const isPointlessToRetry = ({ retryAfterSeconds, status }: GatewayError.GatewayError): boolean =>
  callerErrorStatuses.has(status) && (retryAfterSeconds ?? Number.POSITIVE_INFINITY) > maxSdkRetrySeconds

const callerErrorStatuses: ReadonlySet<number> = new Set([401, 402, 403, 429])

const maxSdkRetrySeconds = 60
