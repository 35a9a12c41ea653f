import type { ResponseOf } from "../../api/Endpoints.ts"
import { decimalText } from "../words/format.ts"

type Described = ResponseOf<"GET", "/admin-ui/admin/policy/fields">
export type PolicyField = Described["fields"][number]

/** Values of some fields of a policy, as the API takes them. */
export type PolicyValues = Readonly<Record<string, unknown>>

const access = [
  "deny",
  "allowed_models",
  "allowed_routes",
  "allowed_providers",
  "allowed_services",
  "allowed_hours_utc",
  "allow_streaming",
  "allow_tools"
]
const limits = [
  "rpm_limit",
  "tpm_limit",
  "max_requests_per_day",
  "max_tokens_per_day",
  "daily_budget_usd",
  "monthly_budget_usd",
  "unpriced_models",
  "max_concurrent_requests"
]

export interface FieldGroup {
  readonly label: string
  readonly fields: ReadonlyArray<PolicyField>
}

/** Groups the fields for people. Fields that are new to the portal are in the last group. */
export const groupsOf = (fields: ReadonlyArray<PolicyField>): ReadonlyArray<FieldGroup> => {
  const inOrder = (names: ReadonlyArray<string>) =>
    names.flatMap((name) => fields.filter(({ field }) => field === name))
  return [
    { label: "Limits and budgets", fields: inOrder(limits) },
    { label: "Access", fields: inOrder(access) },
    { label: "Each request", fields: fields.filter(({ field }) => ![...access, ...limits].includes(field)) }
  ].filter((group) => group.fields.length > 0)
}

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a ?? null) === JSON.stringify(b ?? null)

/** The fields that restrict something. */
export const restrictingOf = (fields: ReadonlyArray<PolicyField>, policy: PolicyValues): PolicyValues =>
  Object.fromEntries(
    fields
      .filter(({ field, unrestricted }) => policy[field] !== undefined && !same(policy[field], unrestricted))
      .map(({ field }) => [field, policy[field]])
  )

/** The fields of `after` whose values are others than in `before`. */
export const changedValues = (before: PolicyValues, after: PolicyValues): PolicyValues =>
  Object.fromEntries(Object.entries(after).filter(([name, value]) => !same(before[name], value)))

/** A value in words: lists by their items, and what restricts nothing as such. */
export const valueText = (value: unknown, unrestricted: unknown = null): string => {
  if (value === undefined || same(value, unrestricted)) return "not restricted"
  if (Array.isArray(value)) return value.length === 0 ? "none" : value.map(String).join(", ")
  if (typeof value === "number") return decimalText(value, 6)
  if (typeof value === "boolean") return value ? "yes" : "no"
  return typeof value === "string" ? value : JSON.stringify(value)
}

/** The same, with a dollar sign where the field is an amount of money. */
export const fieldText = ({ kind, unrestricted }: PolicyField, value: unknown): string => {
  const text = valueText(value, unrestricted)
  return kind === "dollars" && typeof value === "number" ? `$${text}` : text
}
