import { valueText } from "./fields.ts"
import { flatFields } from "./flatFields.ts"

/** These change with everything, and say nothing of what was done. */
const uninteresting = ["updated_at", "policy.policy_version"]

/** The fields of an object in an audit event, by their path. */
export const auditedFields = (json: unknown): Readonly<Record<string, unknown>> =>
  Object.fromEntries(Object.entries(flatFields(json)).filter(([name]) => !uninteresting.includes(name)))

const mostTold = 2
const mostLetters = 40

/** "rpm_limit 60 → 100, and 2 more": what an event changed, in a line. Nothing if it made or deleted the object. */
export const changesText = (before: unknown, after: unknown): string | undefined => {
  if (before === null || after === null) return undefined
  const [was, is] = [auditedFields(before), auditedFields(after)]
  const changed = Object.keys({ ...was, ...is }).filter(
    (name) => JSON.stringify(was[name]) !== JSON.stringify(is[name])
  )
  if (changed.length === 0) return undefined
  const told = changed
    .slice(0, mostTold)
    .map((name) => `${lastOf(name)} ${shortText(was[name])} → ${shortText(is[name])}`)
  const others = changed.length - told.length
  return [...told, ...(others > 0 ? [`and ${others} more`] : [])].join(", ")
}

/** The path says where the field is, and a line has no room for it. */
const lastOf = (path: string): string => path.slice(path.lastIndexOf(".") + 1)

const shortText = (value: unknown): string => {
  const text = value === undefined || value === null ? "none" : valueText(value)
  return text.length > mostLetters ? `${text.slice(0, mostLetters)}…` : text
}
