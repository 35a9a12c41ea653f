import { limited } from "./Limit.ts"
import { type LimitField, limitFields, type SharedLimits } from "./SharedLimits.ts"

/** An exception for one key: until `until` (epoch milliseconds) these limits are at least as high as here. */
export interface LimitRaise {
  readonly id: string
  readonly limits: { readonly [Field in LimitField]?: number }
  readonly until: number
}

export const inForce = (raises: ReadonlyArray<LimitRaise>, now: number): ReadonlyArray<LimitRaise> =>
  raises.filter(({ until }) => until > now)

/** Returns when the first of the raises ends. */
export const nextEnd = (raises: ReadonlyArray<LimitRaise>): number =>
  raises.reduce((earliest, { until }) => Math.min(earliest, until), Number.POSITIVE_INFINITY)

/** Never lowers a limit, also where a policy was changed since the raise was made. */
export const raised = <Limits extends SharedLimits>(policy: Limits, raises: ReadonlyArray<LimitRaise>): Limits => {
  let result = policy
  for (const field of limitFields) {
    const limit = policy[field]
    if (limit._tag === "Unlimited") continue
    const highest = raises.reduce((max, { limits }) => Math.max(max, limits[field] ?? 0), limit.max)
    if (highest > limit.max) result = { ...result, [field]: limited(highest) }
  }
  return result
}
