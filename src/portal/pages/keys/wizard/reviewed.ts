import {
  changedValues,
  fieldText,
  type PolicyField,
  type PolicyValues,
  restrictingOf
} from "../../../shared/policy/fields.ts"

/** Returns the restrictions of the key in words, with the value of the preset where it is another one. */
export const reviewed = (
  fields: ReadonlyArray<PolicyField>,
  base: PolicyValues,
  policy: PolicyValues
): ReadonlyArray<readonly [name: string, value: string]> => {
  const changed = changedValues(base, policy)
  const shown = { ...changed, ...restrictingOf(fields, policy) }
  const rows = fields.flatMap((field): ReadonlyArray<readonly [string, string]> => {
    const name = field.field
    if (!(name in shown)) return []
    const text = fieldText(field, policy[name])
    return [[name, name in changed ? `${text} (the preset: ${fieldText(field, base[name])})` : text]]
  })
  return rows.length === 0 ? [["All fields", "not restricted"]] : rows
}
