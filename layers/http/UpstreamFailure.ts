import { errors } from "undici"
import type { UpstreamError } from "../../src/services/Upstream.ts"

export type UpstreamPhase = UpstreamError["phase"]
export type UpstreamReason = UpstreamError["reason"]

/**
 * Maps an error of undici or Node to the reason of an `UpstreamError`. Returns `undefined` for mistakes on this side,
 * such as an invalid request or a sink that throws.
 */
export const failureReason = (phase: UpstreamPhase, error: Error): UpstreamReason | undefined => {
  if (error instanceof errors.HTTPParserError) return error.message.includes(truncatedChunks) ? "reset" : "malformed"
  const code = "code" in error && typeof error.code === "string" ? error.code : undefined
  if (code === undefined || callerMistakes.has(code)) return undefined
  if (code === "ETIMEDOUT") return "timeout"
  if (phase === "connect") return "refused"
  if (malformedResponses.has(code) || malformedResponses.has(error.message)) return "malformed"
  // In the headers phase, contradictory headers; in the body phase, a body that ended early.
  if (code === "UND_ERR_RES_CONTENT_LENGTH_MISMATCH" && phase === "headers") return "malformed"
  return "reset"
}

const callerMistakes = new Set(["UND_ERR_INVALID_ARG", "UND_ERR_NOT_SUPPORTED"])

/** llhttp's message for a chunked body that ends with the connection. */
const truncatedChunks = "Invalid EOF state"

/** Codes and messages. undici reports an unrequested 100 or 101 as a socket error or a failed assertion. */
const malformedResponses = new Set(["UND_ERR_HEADERS_OVERFLOW", "bad response", "bad upgrade", "ERR_ASSERTION"])
