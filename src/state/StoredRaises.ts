import { Predicate, Schema } from "effect"
import type { LimitRaise } from "../policy/LimitRaise.ts"
import { type LimitField, limitFields } from "../policy/SharedLimits.ts"

/** SQL for the exceptions of the key `k` that have not ended, as JSON. `until` is in milliseconds. */
export const raisesSql = `coalesce((SELECT jsonb_agg(jsonb_build_object('id', id, 'limits', limits,
    'until', floor(extract(epoch FROM until) * 1000)))
  FROM limit_raises WHERE key_id = k.id AND ended_at IS NULL AND until > now()), '[]') AS raises`

const StoredRaise = Schema.Struct({
  id: Schema.String,
  limits: Schema.Record(Schema.String, Schema.Unknown),
  until: Schema.Finite
})
export const StoredRaises = Schema.Array(StoredRaise)

/** Leaves out what this version does not know: without it, the key has its former limits. */
export const raiseOf = ({ id, limits, until }: typeof StoredRaise.Type): LimitRaise => {
  const known: { [Field in LimitField]?: number } = {}
  for (const field of limitFields) {
    const limit = limits[field]
    if (Predicate.isNumber(limit)) known[field] = limit
  }
  return { id, limits: known, until }
}
