import { countedText } from "../words/format.ts"
import { valueText } from "./fields.ts"
import { flatFields } from "./flatFields.ts"

/** These change with everything, and say nothing of what was done. */
const uninteresting = ["updated_at", "policy.policy_version"]

/** The fields of an object in an audit event, by their path. */
export const auditedFields = (json: unknown): Readonly<Record<string, unknown>> =>
  Object.fromEntries(Object.entries(flatFields(json)).filter(([name]) => !uninteresting.includes(name)))

const mostTold = 2
const mostLetters = 40

/** A field that an event changed, in words. */
interface Changed {
  readonly name: string
  readonly before: string
  readonly after: string
}

/** Returns the first fields that an event changed, and the number of the others. An event that made or deleted the object has none. */
export const changesOf = (
  before: unknown,
  after: unknown
): { readonly told: ReadonlyArray<Changed>; readonly others: number } => {
  if (before === null || after === null) return { told: [], others: 0 }
  const [was, is] = [auditedFields(before), auditedFields(after)]
  const paths = Object.keys({ ...was, ...is }).filter(
    (path) => JSON.stringify(was[path] ?? null) !== JSON.stringify(is[path] ?? null)
  )
  const told = paths
    .slice(0, mostTold)
    .map((path) => ({ name: nameOf(path, paths), before: shortText(was[path]), after: shortText(is[path]) }))
  return { told, others: paths.length - told.length }
}

/** A line has no room for the path, unless the name is that of another field, too. */
const nameOf = (path: string, paths: ReadonlyArray<string>): string => {
  const name = lastOf(path)
  return paths.some((other) => other !== path && lastOf(other) === name) ? path : name
}

const lastOf = (path: string): string => path.slice(path.lastIndexOf(".") + 1)

const shortText = (value: unknown): string => {
  const text =
    value === undefined || value === null
      ? "not set"
      : Array.isArray(value) && value.some((item) => typeof item === "object")
        ? countedText(value.length, "entry", "entries")
        : value === ""
          ? "empty"
          : valueText(value)
  const letters = [...text]
  return letters.length > mostLetters ? `${letters.slice(0, mostLetters).join("")}…` : text
}
