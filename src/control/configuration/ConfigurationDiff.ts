import { hash } from "node:crypto"
import { Predicate, type Schema } from "effect"

/** Objects by what they are known by, in the form of the wire. */
export type EntriesById = ReadonlyMap<string, Schema.JsonObject>

export interface FieldChange {
  /** `policy.rpm_limit`. */
  readonly path: string
  /** `null` also where there is no such field. */
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

/** What leads from `before` to `after`, by id. Neither the order of entries nor that of their fields matters. */
export const diffEntries = (before: EntriesById, after: EntriesById): ReadonlyArray<EntryChange> =>
  [...new Set([...before.keys(), ...after.keys()])].sort().flatMap((id) => {
    const oldEntry = before.get(id) ?? null
    const newEntry = after.get(id) ?? null
    const fields = diffFields(oldEntry ?? {}, newEntry ?? {})
    if (oldEntry !== null && newEntry !== null && fields.length === 0) return []
    const action = oldEntry === null ? "create" : newEntry === null ? "delete" : "update"
    return [{ id, action, before: oldEntry, after: newEntry, fields }]
  })

/** SHA-256 of everything in `sections`, in hex: the same for the same content in any order. */
export const fingerprint = (sections: ReadonlyMap<string, EntriesById>): string =>
  hash(
    "sha256",
    canonicalJson(Object.fromEntries([...sections].map(([name, entries]) => [name, Object.fromEntries(entries)])))
  )

const isObject = (json: Schema.Json | undefined): json is Schema.JsonObject =>
  Predicate.isObject(json) && !Array.isArray(json)

/** One text for one value, however its members are ordered. */
const canonicalJson = (json: Schema.Json): string => {
  if (Array.isArray(json)) return `[${json.map(canonicalJson).join(",")}]`
  if (!isObject(json)) return JSON.stringify(json)
  const members = Object.entries(json).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([name, value]) => `${JSON.stringify(name)}:${canonicalJson(value)}`).join(",")}}`
}

/** Its own: `__proto__` may be the name of one. */
const ownMember = (object: Schema.JsonObject, name: string): Schema.Json | undefined =>
  Object.hasOwn(object, name) ? object[name] : undefined

/** Which fields differ; those of objects in them by their own path. */
export const diffFields = (
  before: Schema.JsonObject,
  after: Schema.JsonObject,
  prefix = ""
): ReadonlyArray<FieldChange> =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])].sort().flatMap((name) => {
    const [oldValue, newValue, path] = [ownMember(before, name), ownMember(after, name), prefix + name]
    if (isObject(oldValue) && isObject(newValue)) return diffFields(oldValue, newValue, `${path}.`)
    // a field that is not there and one that is null are apart
    if (oldValue !== undefined && newValue !== undefined && canonicalJson(oldValue) === canonicalJson(newValue))
      return []
    return [{ path, before: oldValue ?? null, after: newValue ?? null }]
  })
