import { hash } from "node:crypto"
import { Predicate, type Schema } from "effect"

/** Objects by what they are known by, in the form of the wire. */
export type Entries = ReadonlyMap<string, Schema.JsonObject>

export interface FieldDifference {
  /** `policy.rpm_limit`. */
  readonly path: string
  /** `null` also where there is no such field. */
  readonly before: Schema.Json
  readonly after: Schema.Json
}

export interface Difference {
  readonly id: string
  readonly action: "create" | "update" | "delete"
  readonly before: Schema.JsonObject | null
  readonly after: Schema.JsonObject | null
  readonly fields: ReadonlyArray<FieldDifference>
}

/** What leads from `before` to `after`, by id. Neither the order of entries nor that of their fields matters. */
export const between = (before: Entries, after: Entries): ReadonlyArray<Difference> =>
  [...new Set([...before.keys(), ...after.keys()])].sort().flatMap((id) => {
    const held = before.get(id) ?? null
    const wanted = after.get(id) ?? null
    const fields = fieldsBetween(held ?? {}, wanted ?? {})
    if (held !== null && wanted !== null && fields.length === 0) return []
    const action = held === null ? "create" : wanted === null ? "delete" : "update"
    return [{ id, action, before: held, after: wanted, fields }]
  })

/** SHA-256 of everything in `sections`, in hex: the same for the same content in any order. */
export const fingerprint = (sections: ReadonlyMap<string, Entries>): string =>
  hash(
    "sha256",
    canonical(Object.fromEntries([...sections].map(([name, entries]) => [name, Object.fromEntries(entries)])))
  )

const isObject = (json: Schema.Json | undefined): json is Schema.JsonObject =>
  Predicate.isObject(json) && !Array.isArray(json)

/** One text for one value, however its members are ordered. */
const canonical = (json: Schema.Json): string => {
  if (Array.isArray(json)) return `[${json.map(canonical).join(",")}]`
  if (!isObject(json)) return JSON.stringify(json)
  const members = Object.entries(json).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([name, value]) => `${JSON.stringify(name)}:${canonical(value)}`).join(",")}}`
}

/** Its own: `__proto__` may be the name of one. */
const member = (object: Schema.JsonObject, name: string): Schema.Json | undefined =>
  Object.hasOwn(object, name) ? object[name] : undefined

/** Which fields differ; those of objects in them by their own path. */
export const fieldsBetween = (
  before: Schema.JsonObject,
  after: Schema.JsonObject,
  prefix = ""
): ReadonlyArray<FieldDifference> =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])].sort().flatMap((name) => {
    const [held, wanted, path] = [member(before, name), member(after, name), prefix + name]
    if (isObject(held) && isObject(wanted)) return fieldsBetween(held, wanted, `${path}.`)
    // a field that is not there and one that is null are apart
    if (held !== undefined && wanted !== undefined && canonical(held) === canonical(wanted)) return []
    return [{ path, before: held ?? null, after: wanted ?? null }]
  })
