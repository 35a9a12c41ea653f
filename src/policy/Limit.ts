import { Schema, SchemaTransformation } from "effect"

/** A maximum, or no limit. `Limited(0)` allows nothing. */
export type Limit = { readonly _tag: "Unlimited" } | { readonly _tag: "Limited"; readonly max: number }

export const unlimited: Limit = { _tag: "Unlimited" }
export const limited = (max: number): Limit => ({ _tag: "Limited", max })

export const strictest = (a: Limit, b: Limit): Limit =>
  a._tag === "Unlimited" ? b : b._tag === "Unlimited" ? a : limited(Math.min(a.max, b.max))

export const exceeds = (limit: Limit, value: number): boolean => limit._tag === "Limited" && value > limit.max

const Tagged = Schema.Union([
  Schema.Struct({ _tag: Schema.Literal("Unlimited") }),
  Schema.Struct({ _tag: Schema.Literal("Limited"), max: Schema.Finite })
])

const transformation = SchemaTransformation.transform<Limit, number | null>({
  decode: (value) => (value === null ? unlimited : limited(value)),
  encode: (limit) => (limit._tag === "Unlimited" ? null : limit.max)
})

/** In JSON a limit is a number, or `null` for no limit. */
export type LimitSchema = Schema.Codec<Limit, number | null>

/** In JSON the limit is an integer in the given range, or `null` for no limit. */
export const between = (minimum: number, maximum: number): LimitSchema =>
  Schema.NullOr(Schema.Int.check(Schema.isBetween({ minimum, maximum }))).pipe(Schema.decodeTo(Tagged, transformation))

export const CountLimit = between(0, Number.MAX_SAFE_INTEGER)

/** In JSON the limit is US dollars, or `null` for no limit. Redis counters are exact up to the maximum of 9,000,000. */
export const DollarLimit: LimitSchema = Schema.NullOr(
  Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 9_000_000 }))
).pipe(Schema.decodeTo(Tagged, transformation))
