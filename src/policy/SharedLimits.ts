import { Schema, Struct } from "effect"
import { KeyPolicy, neutral } from "./KeyPolicy.ts"
import type { Limit } from "./Limit.ts"

const fields = [
  "rpm_limit",
  "tpm_limit",
  "max_requests_per_day",
  "max_tokens_per_day",
  "daily_budget_usd",
  "monthly_budget_usd"
] as const

/** A limit that is counted in Redis. */
export type LimitField = (typeof fields)[number]

/**
 * Limits that all requests under a policy layer share, whichever key they come with. `null` on the wire is no limit.
 * (The limits of the layer's `policy` bound each key on its own.)
 */
export const SharedLimits = KeyPolicy.mapFields(Struct.pick(fields))
export type SharedLimits = typeof SharedLimits.Type

/** Any part of them: what a request to set them says, and how they are read back from their row. */
export const SharedLimitsPatch = SharedLimits.mapFields(Struct.map(Schema.optionalKey))
export type SharedLimitsPatch = typeof SharedLimitsPatch.Type

export const none: SharedLimits = Struct.pick(neutral, fields)

/** What is left out is unlimited. */
export const of = (patch: SharedLimitsPatch): SharedLimits => ({ ...none, ...patch })

export const hasLimit = (limits: Record<LimitField, Limit>): boolean =>
  fields.some((field) => limits[field]._tag === "Limited")

/**
 * For each limit of a day or a month, the number of the change of configuration that set it where there was none. Later
 * changes have higher numbers; a limit without one was set before changes were numbered.
 */
export const Since = Schema.Record(Schema.String, Schema.Int)
export type Since = { readonly [field in LimitField]?: number }
