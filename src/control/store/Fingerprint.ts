import { hash } from "node:crypto"
import { Predicate, type Schema } from "effect"

/** The entries of one section of the configuration, as JSON. The keys of the map are the ids of the entries. */
export type EntriesById = ReadonlyMap<string, Schema.JsonObject>

/** Returns the SHA-256 of all sections, in hex. The order of entries and fields has no effect. */
export const fingerprint = (sections: ReadonlyMap<string, EntriesById>): string =>
  hash(
    "sha256",
    canonicalJson(Object.fromEntries([...sections].map(([name, entries]) => [name, Object.fromEntries(entries)])))
  )

export const isObject = (json: Schema.Json | undefined): json is Schema.JsonObject =>
  Predicate.isObject(json) && !Array.isArray(json)

/** JSON with sorted members, so that equal values have equal text. */
export const canonicalJson = (json: Schema.Json): string => {
  if (Array.isArray(json)) return `[${json.map(canonicalJson).join(",")}]`
  if (!isObject(json)) return JSON.stringify(json)
  const members = Object.entries(json).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([name, value]) => `${JSON.stringify(name)}:${canonicalJson(value)}`).join(",")}}`
}
