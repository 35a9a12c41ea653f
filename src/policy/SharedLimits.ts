import { Schema, Struct } from "effect"
import { KeyPolicy, neutral } from "./KeyPolicy.ts"
import type { Limit } from "./Limit.ts"

/** The limits that are counted in Redis. */
export const limitFields = [
  "rpm_limit",
  "tpm_limit",
  "max_requests_per_day",
  "max_tokens_per_day",
  "daily_budget_usd",
  "monthly_budget_usd"
] as const

export type LimitField = (typeof limitFields)[number]

/** All keys of a policy layer share these limits. The limits in the layer's `policy` apply to each key separately. */
export const SharedLimits = KeyPolicy.mapFields(Struct.pick(limitFields))
export type SharedLimits = typeof SharedLimits.Type

export const SharedLimitsPatch = SharedLimits.mapFields(Struct.map(Schema.optionalKey))
export type SharedLimitsPatch = typeof SharedLimitsPatch.Type

export const none: SharedLimits = Struct.pick(neutral, limitFields)

export const of = (patch: SharedLimitsPatch): SharedLimits => ({ ...none, ...patch })

export const hasLimit = (limits: Record<LimitField, Limit>): boolean =>
  limitFields.some((field) => limits[field]._tag === "Limited")

/** The number of the configuration change that set each daily or monthly limit. Older limits have no number. */
export const Since = Schema.Record(Schema.String, Schema.Int)
export type Since = { readonly [field in LimitField]?: number }
