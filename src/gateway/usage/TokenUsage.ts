import type { Types } from "effect"
import { maxDollars } from "../../policy/Price.ts"
import type { Family } from "../../policy/routes/CanonicalRoute.ts"

/** Token counts in one form for all providers. A count is absent if the provider did not report it. */
export interface TokenUsage {
  /** All input tokens, including those read from and written to the provider's cache. */
  readonly input?: number
  readonly output?: number
  readonly total?: number
  readonly cachedInput?: number
  readonly cacheWrite?: number
  readonly reasoning?: number
}

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

/** Omits absent counts, so that merging a stream's later report does not erase earlier counts. */
const withoutUndefined = (counts: { readonly [Name in keyof TokenUsage]: number | undefined }): TokenUsage => {
  const usage: Types.Mutable<TokenUsage> = {}
  for (const name of names) {
    const value = counts[name]
    if (value !== undefined) usage[name] = value
  }
  return usage
}

/** OpenAI's input count (family A) includes cached tokens. Anthropic's (family B) does not, so they are added. */
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
  // Some providers count reasoning tokens only in the total. The output is then the total minus the input.
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

/** Returns the first positive cost that the response reports. Returns zero if all reported costs are zero. */
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

const usageIn = (container: unknown): JsonObject | undefined =>
  isObject(container) && isObject(container["usage"]) ? container["usage"] : undefined

/** Reads usage from the top level, from `response` (OpenAI events) or from `message` (Anthropic events). */
export const read = (family: Family, json: unknown): ReportedUsage | undefined => {
  if (!isObject(json)) return undefined
  const found = usageIn(json) ?? usageIn(json["response"]) ?? usageIn(json["message"])
  const costUsd = costOf(json, found)
  if (found === undefined && costUsd === undefined) return undefined
  const usage = found === undefined ? {} : normalise(family, found)
  return costUsd === undefined ? { usage } : { usage, costUsd }
}

/** Keeps the larger input count, because some upstreams repeat the input without its cached part. */
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
