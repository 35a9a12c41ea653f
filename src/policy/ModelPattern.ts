import { Schema } from "effect"
import { type AllowList, allow } from "./AllowList.ts"

/**
 * How operators name models in lists and prices: `gpt-5` is that model alone, and `gpt-5*` is every model whose name
 * begins with `gpt-5`. A `*` in another place is a character like any other.
 */
export type ModelPattern = string

/** The beginning that a pattern asks for; `undefined` where it names one model. */
export const prefixOf = (pattern: ModelPattern): string | undefined =>
  pattern.endsWith("*") ? pattern.slice(0, -1) : undefined

/** A `*` anywhere but at the end would match nothing that its writer has in mind. */
export const isModelPattern = Schema.makeFilter(
  (pattern: string) => {
    const star = pattern.indexOf("*")
    return star === -1 || star === pattern.length - 1
  },
  { expected: 'the name of a model, or the beginning of names with one "*" at its end, such as "gpt-5*"' }
)

/** Whether the list names the model, or a pattern of it matches. Of a pattern: whether it is a part of what is allowed. */
export const allowsModel = (list: AllowList<ModelPattern>, model: ModelPattern): boolean =>
  list._tag === "AllowAll" || list.values.includes(model) || list.values.some((pattern) => matches(pattern, model))

const matches = (pattern: ModelPattern, model: string): boolean => {
  const prefix = prefixOf(pattern)
  return prefix !== undefined && model.startsWith(prefix)
}

/** What both allow. Two patterns that match the same model begin alike, so that the longer one is what they share. */
export const intersection = (a: AllowList<ModelPattern>, b: AllowList<ModelPattern>): AllowList<ModelPattern> => {
  if (a._tag === "AllowAll") return b
  if (b._tag === "AllowAll") return a
  const shared = [
    ...a.values.filter((pattern) => allowsModel(b, pattern)),
    ...b.values.filter((pattern) => allowsModel(a, pattern))
  ]
  return allow([...new Set(shared)])
}
