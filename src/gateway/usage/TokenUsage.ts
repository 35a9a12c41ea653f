import type { Types } from "effect"
import { maxDollars } from "../../policy/Price.ts"
import type { Family } from "../../policy/routes/CanonicalRoute.ts"

/** Tokens as providers report them, brought to one meaning. Absent: not reported. */
export interface TokenUsage {
  /** All input: also what came from, or went into, the provider's cache. */
  readonly input?: number
  readonly output?: number
  readonly total?: number
  /** Of the input: read from the cache. */
  readonly cachedInput?: number
  /** Of the input: written to the cache. */
  readonly cacheWrite?: number
  /** Of the output: spent on reasoning. */
  readonly reasoning?: number
}

/** What an answer, or the events of one, said about what it took. */
export interface ReportedUsage {
  readonly usage: TokenUsage
  readonly costUsd?: number
}

interface JsonObject {
  readonly [key: string]: unknown
}

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const validCount = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isFinite(value) && value >= 0 ? Math.min(Math.round(value), 1e12) : undefined

const names = ["input", "output", "total", "cachedInput", "cacheWrite", "reasoning"] as const

/** Only what was reported: a later report of a stream must not take back an earlier one. */
const withoutUndefined = (counts: { readonly [Name in keyof TokenUsage]: number | undefined }): TokenUsage => {
  const usage: Types.Mutable<TokenUsage> = {}
  for (const name of names) {
    const value = counts[name]
    if (value !== undefined) usage[name] = value
  }
  return usage
}

/**
 * One `usage` object. Family A counts cached input inside its input; family B counts it beside, so there the parts are
 * added up. Zero is a report, not an absence.
 */
export const normalise = (family: Family, usage: JsonObject): TokenUsage => {
  const promptTokens = validCount(usage["prompt_tokens"]) ?? validCount(usage["input_tokens"])
  const output = validCount(usage["completion_tokens"]) ?? validCount(usage["output_tokens"])
  if (family === "b") {
    const cachedInput = validCount(usage["cache_read_input_tokens"])
    const cacheWrite = validCount(usage["cache_creation_input_tokens"])
    const input = promptTokens === undefined ? undefined : promptTokens + (cachedInput ?? 0) + (cacheWrite ?? 0)
    return withoutUndefined({ input, output, cachedInput, cacheWrite })
  }
  const total = validCount(usage["total_tokens"])
  // some providers leave the reasoning out of the output, and count it in the total
  const totalWithoutInput = total === undefined || promptTokens === undefined ? 0 : total - promptTokens
  const inputDetails = usage["prompt_tokens_details"] ?? usage["input_tokens_details"]
  const outputDetails = usage["completion_tokens_details"] ?? usage["output_tokens_details"]
  return withoutUndefined({
    input: promptTokens,
    output: totalWithoutInput > (output ?? 0) ? totalWithoutInput : output,
    total,
    cachedInput: isObject(inputDetails) ? validCount(inputDetails["cached_tokens"]) : undefined,
    reasoning: isObject(outputDetails) ? validCount(outputDetails["reasoning_tokens"]) : undefined
  })
}

const validCost = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : undefined

/** The upstream's own figure: the first of these places that has one, and zero where no other has more. */
const costOf = (json: JsonObject, usage: JsonObject | undefined): number | undefined => {
  const hidden = json["_hidden_params"]
  const amounts = [
    json["estimated_cost"],
    json["response_cost"],
    usage?.["estimated_cost"],
    usage?.["total_cost"],
    usage?.["cost"],
    isObject(hidden) ? hidden["response_cost"] : undefined
  ].map(validCost)
  const costUsd = amounts.find((value) => value !== undefined && value > 0) ?? amounts.find((value) => value === 0)
  return costUsd === undefined ? undefined : Math.min(costUsd, maxDollars)
}

const usageIn = (place: unknown): JsonObject | undefined =>
  isObject(place) && isObject(place["usage"]) ? place["usage"] : undefined

/**
 * Reads an answer, or one event: the usage may stand at its top, in `response` (family A events) or `message` (family
 * B).
 */
export const read = (family: Family, json: unknown): ReportedUsage | undefined => {
  if (!isObject(json)) return undefined
  const found = usageIn(json) ?? usageIn(json["response"]) ?? usageIn(json["message"])
  const costUsd = costOf(json, found)
  if (found === undefined && costUsd === undefined) return undefined
  const usage = found === undefined ? {} : normalise(family, found)
  return costUsd === undefined ? { usage } : { usage, costUsd }
}

/**
 * Later reports of a stream replace earlier ones, field by field. Only the input never shrinks: some upstreams repeat
 * it at the end without the part that came from the cache.
 */
export const merge = (earlier: ReportedUsage | undefined, later: ReportedUsage): ReportedUsage => {
  if (earlier === undefined) return later
  const usage = { ...earlier.usage, ...later.usage }
  const [before, after] = [earlier.usage.input, later.usage.input]
  return {
    ...earlier,
    ...later,
    usage: before !== undefined && after !== undefined && before > after ? { ...usage, input: before } : usage
  }
}
