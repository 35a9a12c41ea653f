import type { Schema } from "effect"
import { canonicalJson, type EntriesById, isObject } from "../store/Fingerprint.ts"

export interface FieldChange {
  /** Dotted path, such as `policy.rpm_limit`. */
  readonly path: string
  /** The old value. It is also `null` if the field was absent. */
  readonly before: Schema.Json
  readonly after: Schema.Json
}

export interface EntryChange {
  readonly id: string
  readonly action: "create" | "update" | "delete"
  readonly before: Schema.JsonObject | null
  readonly after: Schema.JsonObject | null
  readonly fields: ReadonlyArray<FieldChange>
}

/** Compares two sets of entries. The order of entries and fields has no effect. The changes are sorted by id. */
export const diffEntries = (before: EntriesById, after: EntriesById): ReadonlyArray<EntryChange> =>
  [...new Set([...before.keys(), ...after.keys()])].sort().flatMap((id) => {
    const oldEntry = before.get(id) ?? null
    const newEntry = after.get(id) ?? null
    const fields = diffFields(oldEntry ?? {}, newEntry ?? {})
    if (oldEntry !== null && newEntry !== null && fields.length === 0) return []
    const action = oldEntry === null ? "create" : newEntry === null ? "delete" : "update"
    return [{ id, action, before: oldEntry, after: newEntry, fields }]
  })

/** Ignores inherited members, because a field may be named `__proto__`. */
const ownMember = (object: Schema.JsonObject, name: string): Schema.Json | undefined =>
  Object.hasOwn(object, name) ? object[name] : undefined

/** Compares two objects field by field. The path of a nested field contains dots. */
export const diffFields = (
  before: Schema.JsonObject,
  after: Schema.JsonObject,
  prefix = ""
): ReadonlyArray<FieldChange> =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])].sort().flatMap((name) => {
    const [oldValue, newValue, path] = [ownMember(before, name), ownMember(after, name), prefix + name]
    if (isObject(oldValue) && isObject(newValue)) return diffFields(oldValue, newValue, `${path}.`)
    // A field that is absent on one side differs from a field that is `null`.
    if (oldValue !== undefined && newValue !== undefined && canonicalJson(oldValue) === canonicalJson(newValue))
      return []
    return [{ path, before: oldValue ?? null, after: newValue ?? null }]
  })
