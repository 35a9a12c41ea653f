import type { Family } from "./model/CanonicalRoute.ts"
import { maxDollars } from "./model/Price.ts"

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
export interface Reported {
  readonly usage: TokenUsage
  readonly costUsd?: number
}

export const isObject = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const count = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isFinite(value) && value >= 0 ? Math.min(Math.round(value), 1e12) : undefined

const defined = <T extends object>(fields: { readonly [K in keyof T]: T[K] | undefined }): Partial<T> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<T>

/**
 * One `usage` object. Family A counts cached input inside its input; family B counts it beside, so there the parts are
 * added up. Zero is a report, not an absence.
 */
export const normalise = (family: Family, usage: { readonly [key: string]: unknown }): TokenUsage => {
  const plain = count(usage["prompt_tokens"]) ?? count(usage["input_tokens"])
  const output = count(usage["completion_tokens"]) ?? count(usage["output_tokens"])
  if (family === "b") {
    const cachedInput = count(usage["cache_read_input_tokens"])
    const cacheWrite = count(usage["cache_creation_input_tokens"])
    const input = plain === undefined ? undefined : plain + (cachedInput ?? 0) + (cacheWrite ?? 0)
    return defined<TokenUsage>({ input, output, total: undefined, cachedInput, cacheWrite, reasoning: undefined })
  }
  const inputDetails = usage["prompt_tokens_details"] ?? usage["input_tokens_details"]
  const outputDetails = usage["completion_tokens_details"] ?? usage["output_tokens_details"]
  return defined<TokenUsage>({
    input: plain,
    output,
    total: count(usage["total_tokens"]),
    cachedInput: isObject(inputDetails) ? count(inputDetails["cached_tokens"]) : undefined,
    cacheWrite: undefined,
    reasoning: isObject(outputDetails) ? count(outputDetails["reasoning_tokens"]) : undefined
  })
}

const positive = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value) && value > 0

/** The upstream's own figure, in the order of reference §10.3. */
const costOf = (json: { readonly [key: string]: unknown }, usage: unknown): number | undefined => {
  const inUsage = isObject(usage) ? usage : {}
  const hidden = isObject(json["_hidden_params"]) ? json["_hidden_params"] : {}
  const costUsd = [
    json["estimated_cost"],
    json["response_cost"],
    inUsage["estimated_cost"],
    inUsage["total_cost"],
    inUsage["cost"],
    hidden["response_cost"]
  ].find(positive)
  return costUsd === undefined ? undefined : Math.min(costUsd, maxDollars)
}

/** Reads an answer, or one event: the usage may stand at its top, in `response` (family A events) or `message` (family B). */
export const read = (family: Family, json: unknown): Reported | undefined => {
  if (!isObject(json)) return undefined
  const holder = [json, json["response"], json["message"]].find((place) => isObject(place) && isObject(place["usage"]))
  const usage = isObject(holder) ? holder["usage"] : undefined
  const costUsd = costOf(json, usage)
  if (!isObject(usage) && costUsd === undefined) return undefined
  return {
    usage: isObject(usage) ? normalise(family, usage) : {},
    ...(costUsd === undefined ? {} : { costUsd })
  }
}

/** Later reports of a stream replace earlier ones, field by field. */
export const merge = (earlier: Reported | undefined, later: Reported): Reported => ({
  ...earlier,
  ...later,
  usage: { ...earlier?.usage, ...later.usage }
})
