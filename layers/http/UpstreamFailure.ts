import { errors } from "undici"
import type { UpstreamError } from "../../src/services/Upstream.ts"

export type UpstreamPhase = UpstreamError["phase"]
export type UpstreamReason = UpstreamError["reason"]

/**
 * What an error of undici or Node says about the upstream. `undefined`: nothing, it is a mistake on this side (an
 * exchange that is not HTTP, a sink that threw).
 */
export const failureReason = (phase: UpstreamPhase, error: Error): UpstreamReason | undefined => {
  // It never has a code, whatever its type says.
  if (error instanceof errors.HTTPParserError) return error.message.includes(truncatedChunks) ? "reset" : "malformed"
  const code = "code" in error && typeof error.code === "string" ? error.code : undefined
  if (code === undefined || callerMistakes.has(code)) return undefined
  if (code === "ETIMEDOUT") return "timeout"
  if (phase === "connect") return "refused"
  if (malformedResponses.has(code) || malformedResponses.has(error.message)) return "malformed"
  // Short of its length: a head that contradicts itself, or a body that was cut.
  if (code === "UND_ERR_RES_CONTENT_LENGTH_MISMATCH" && phase === "headers") return "malformed"
  return "reset"
}

const callerMistakes = new Set(["UND_ERR_INVALID_ARG", "UND_ERR_NOT_SUPPORTED"])

/** llhttp's word for chunks that end with the connection. */
const truncatedChunks = "Invalid EOF state"

/** By message: socket errors to undici, but it was an unasked 100 or 101. Its assertion trips over the 101 as well. */
const malformedResponses = new Set(["UND_ERR_HEADERS_OVERFLOW", "bad response", "bad upgrade", "ERR_ASSERTION"])
