import { hash } from "node:crypto"
import { Predicate, type Schema } from "effect"

/** The entries of one section of the document, as JSON. The keys of the map are the ids of the entries. */
export type EntriesById = ReadonlyMap<string, Schema.JsonObject>

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

/** Returns the SHA-256 of all sections, in hex. The order of entries and fields has no effect. */
export const fingerprint = (sections: ReadonlyMap<string, EntriesById>): string =>
  hash(
    "sha256",
    canonicalJson(Object.fromEntries([...sections].map(([name, entries]) => [name, Object.fromEntries(entries)])))
  )

const isObject = (json: Schema.Json | undefined): json is Schema.JsonObject =>
  Predicate.isObject(json) && !Array.isArray(json)

/** JSON with sorted members, so that equal values have equal text. */
const canonicalJson = (json: Schema.Json): string => {
  if (Array.isArray(json)) return `[${json.map(canonicalJson).join(",")}]`
  if (!isObject(json)) return JSON.stringify(json)
  const members = Object.entries(json).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([name, value]) => `${JSON.stringify(name)}:${canonicalJson(value)}`).join(",")}}`
}

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
