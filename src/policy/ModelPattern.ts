import { Schema } from "effect"
import { type AllowList, allow } from "./AllowList.ts"

/** `gpt-5*` matches every name with that prefix. A `*` elsewhere is an ordinary character. */
export type ModelPattern = string

export const prefixOf = (pattern: ModelPattern): string | undefined =>
  pattern.endsWith("*") ? pattern.slice(0, -1) : undefined

/** Refuses a `*` before the end: operators would expect a wildcard, and it would match nothing. */
export const isModelPattern = Schema.makeFilter(
  (pattern: string) => {
    const star = pattern.indexOf("*")
    return star === -1 || star === pattern.length - 1
  },
  { expected: 'the name of a model, or the beginning of names with one "*" at its end, such as "gpt-5*"' }
)

/** True if the list allows the model. For a pattern: true if the list allows every model that it matches. */
export const allowsModel = (list: AllowList<ModelPattern>, model: ModelPattern): boolean =>
  list._tag === "AllowAll" || list.values.includes(model) || list.values.some((pattern) => matches(pattern, model))

const matches = (pattern: ModelPattern, model: string): boolean => {
  const prefix = prefixOf(pattern)
  return prefix !== undefined && model.startsWith(prefix)
}

/**
 * If two patterns match the same model, the prefix of one begins with the prefix of the other, so the longer pattern is
 * their intersection.
 */
export const intersection = (a: AllowList<ModelPattern>, b: AllowList<ModelPattern>): AllowList<ModelPattern> => {
  if (a._tag === "AllowAll") return b
  if (b._tag === "AllowAll") return a
  const shared = [
    ...a.values.filter((pattern) => allowsModel(b, pattern)),
    ...b.values.filter((pattern) => allowsModel(a, pattern))
  ]
  return allow([...new Set(shared)])
}
