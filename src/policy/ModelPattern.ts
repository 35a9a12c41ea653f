import { Schema } from "effect"
import { type AllowList, allow } from "./AllowList.ts"

/** `gpt-5*` matches every name that begins with `gpt-5`. A `*` elsewhere is an ordinary character. */
type ModelPattern = string

export const prefixOf = (pattern: ModelPattern): string | undefined =>
  pattern.endsWith("*") ? pattern.slice(0, -1) : undefined

/** Refuses a `*` that is not the last character, because operators would expect it to match anything. */
export const isModelPattern = Schema.makeFilter(
  (pattern: string) => {
    const star = pattern.indexOf("*")
    return star === -1 || star === pattern.length - 1
  },
  { expected: 'the name of a model, or the beginning of names with one "*" at its end, such as "gpt-5*"' }
)

/** Returns true if the list allows the model. A pattern is allowed if every model that it matches is allowed. */
export const allowsModel = (list: AllowList<ModelPattern>, model: ModelPattern): boolean =>
  list._tag === "AllowAll" || list.values.includes(model) || list.values.some((pattern) => matches(pattern, model))

const matches = (pattern: ModelPattern, model: string): boolean => {
  const prefix = prefixOf(pattern)
  return prefix !== undefined && model.startsWith(prefix)
}

/** If two patterns have a common match, one prefix begins with the other. Their intersection is the longer pattern. */
export const intersection = (a: AllowList<ModelPattern>, b: AllowList<ModelPattern>): AllowList<ModelPattern> => {
  if (a._tag === "AllowAll") return b
  if (b._tag === "AllowAll") return a
  const shared = [
    ...a.values.filter((pattern) => allowsModel(b, pattern)),
    ...b.values.filter((pattern) => allowsModel(a, pattern))
  ]
  return allow([...new Set(shared)])
}
