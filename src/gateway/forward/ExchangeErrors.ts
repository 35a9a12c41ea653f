import { Cause, Exit, Result } from "effect"
import type { Limit } from "../../policy/Limit.ts"
import { type BodyLimit, responseTooLarge } from "../../policy/routes/BodyLimit.ts"
import type { Exchange, UpstreamError } from "../../services/Upstream.ts"
import { type ErrorCode, GatewayError } from "../GatewayError.ts"
import type { ExceededLimit } from "../usage/DenialRecords.ts"

interface ErrorContext {
  readonly exchange: Exchange
  readonly requestBodyRefusal?: (() => GatewayError | undefined) | undefined
  readonly streamLimits?: { readonly maxEventBytes: Limit; readonly maxSeconds: Limit } | undefined
}

export const errorOf = (
  exit: Exit.Exit<void, UpstreamError>,
  cutBy: ExceededLimit | undefined,
  { requestBodyRefusal, exchange, streamLimits }: ErrorContext,
  limit: BodyLimit
): GatewayError => {
  if (cutBy !== undefined) {
    return new GatewayError({ code: "response_body_too_large", message: limitMessages(limit, streamLimits)[cutBy] })
  }
  const bodyRefusal = requestBodyRefusal?.()
  if (bodyRefusal !== undefined) return bodyRefusal
  const error = Exit.isFailure(exit) ? Result.getOrUndefined(Cause.findError(exit.cause)) : undefined
  if (error === undefined)
    return new GatewayError({
      code: "internal_error",
      message: "The gateway failed. Give the operator the request id."
    })
  if (error.reason === "busy") {
    const limit = error.limit === undefined ? "" : ` ${error.limit}`
    const owner = error.whose === "caller" ? "this key, or this address," : "the gateway"
    return new GatewayError({
      code: "gateway_overloaded",
      message: `All${limit} connections that ${owner} may have to this upstream are busy, and none became free in time. Try again shortly.`,
      retryAfterSeconds: 1
    })
  }
  if (error.reason === "timeout") {
    const action =
      error.phase === "connect"
        ? "accept a connection"
        : error.phase === "headers"
          ? "begin its response"
          : "continue its response"
    return new GatewayError({
      code: "upstream_timeout",
      message: `The upstream did not ${action} within ${exchange.headersWithinMs} ms (timeout_ms of the route). Try again, or ask an operator to raise the limit.`
    })
  }
  return new GatewayError({ code: "upstream_connection", message: connectionMessages[error.reason] })
}

const limitMessages = (limit: BodyLimit, stream: ErrorContext["streamLimits"]): Record<ExceededLimit, string> => ({
  size: responseTooLarge(limit),
  event: `An event of the response is larger than ${formatLimit(stream?.maxEventBytes)} bytes (max_sse_event_bytes of this key's policy). Request less output, or ask an operator to raise the limit.`,
  duration: `The response streamed for longer than ${formatLimit(stream?.maxSeconds)} seconds (max_stream_duration_seconds of this key's policy). Request less output, or ask an operator to raise the limit.`
})

const formatLimit = (limit: Limit | undefined): string => (limit?._tag === "Limited" ? String(limit.max) : "allowed")

const connectionMessages = {
  refused: "The upstream could not be reached. Try again shortly, or ask an operator to check the upstream.",
  reset: "The upstream closed the connection before its response was complete. Try again.",
  malformed: "The upstream's response is not valid HTTP. Ask an operator to check the upstream.",
  stopped: "The gateway ended the exchange with the upstream before the response was complete. Try again."
} as const

export const fallbackStatuses: ReadonlySet<number> = new Set([429, 500, 502, 503, 504])
const fallbackCodes: ReadonlySet<ErrorCode> = new Set(["upstream_connection", "upstream_timeout", "gateway_overloaded"])

export const isFallbackError = (error: GatewayError | undefined): boolean =>
  error !== undefined && fallbackCodes.has(error.code)
