import { errors } from "undici"
import type { UpstreamError } from "../../src/services/Upstream.ts"

export type UpstreamPhase = UpstreamError["phase"]
export type UpstreamReason = UpstreamError["reason"]

/**
 * Converts an error of undici or Node into the reason of an `UpstreamError`. Returns `undefined` for mistakes of this
 * program, such as an invalid request.
 */
export const failureReason = (phase: UpstreamPhase, error: Error): UpstreamReason | undefined => {
  if (error instanceof errors.HTTPParserError) return error.message.includes(truncatedChunks) ? "reset" : "malformed"
  const code = "code" in error && typeof error.code === "string" ? error.code : undefined
  if (code === undefined || callerMistakes.has(code)) return undefined
  if (code === "ETIMEDOUT") return "timeout"
  if (phase === "connect") return "refused"
  if (malformedResponses.has(code) || malformedResponses.has(error.message)) return "malformed"
  // In the headers phase, this code means contradictory headers. Later it means that the body ended early.
  if (code === "UND_ERR_RES_CONTENT_LENGTH_MISMATCH" && phase === "headers") return "malformed"
  return "reset"
}

const callerMistakes = new Set(["UND_ERR_INVALID_ARG", "UND_ERR_NOT_SUPPORTED"])

/** The parser's message if the connection ends within a chunked body. */
const truncatedChunks = "Invalid EOF state"

/** Codes and messages of undici for invalid responses, including an unrequested 100 or 101. */
const malformedResponses = new Set(["UND_ERR_HEADERS_OVERFLOW", "bad response", "bad upgrade", "ERR_ASSERTION"])
