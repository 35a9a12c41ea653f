import type { Schema } from "effect"
import { diffFields, type FieldChange } from "./ConfigurationDiff.ts"

/** Describes in one sentence what a key gains or loses. */
export const ofKey = (key: string, fields: ReadonlyArray<FieldChange>): string =>
  `Key ${key} ${fields.flatMap(phrasesOf).join("; ")}.`

/** Describes in one sentence what a policy layer changes for its keys. */
export const ofLayer = (layer: string, keys: number, before: Schema.JsonObject, after: Schema.JsonObject): string => {
  const effects = diffFields(before, after)
    .filter(({ path }) => path.includes(".") || path === "enabled")
    .flatMap(phrasesOf)
  return `Policy layer ${layer}, which covers ${keys === 1 ? "1 key" : `${keys} keys`}, ${effects.join("; ") || "restricts nothing"}.`
}

const policyPrefix = "policy."
const guardrailPrefix = "guardrail_policy."
const sharedPrefix = "shared."

/** Says of one field what is gained or lost, such as `loses: its rpm_limit falls from 60 to 30`. */
export const phrasesOf = ({ after, before, path }: FieldChange): ReadonlyArray<string> => {
  const name = path.startsWith(policyPrefix) ? path.slice(policyPrefix.length) : path
  switch (name) {
    case "deny":
      return [after === true ? "is denied everything" : "is no longer denied everything"]
    case "enabled":
      return [after === false ? "is switched off and restricts nothing" : "is switched on"]
    case "disabled":
      return [after === true ? "is disabled and loses everything" : "is enabled again"]
    case "expires_at":
      return [after === null ? `no longer expires (it would on ${textOf(before)})` : `expires on ${textOf(after)}`]
    case "service_names":
      return isList(before) && isList(after) ? listPhrases("services", emptyAsAll(before), emptyAsAll(after)) : []
    case "rotation_due_at":
      return [after === null ? "is no longer due for rotation" : `is due for rotation on ${textOf(after)}`]
  }
  if (path.startsWith(sharedPrefix)) return [boundPhrase(`shared ${path.slice(sharedPrefix.length)}`, before, after)]
  if (path.startsWith(guardrailPrefix)) return guardrailPhrases(path.slice(guardrailPrefix.length), before, after)
  if (path === name) return [`has ${name} ${textOf(after)} instead of ${textOf(before)}`]
  if (name.startsWith("allow_")) return [`${after === true ? "gains" : "loses"} ${name.slice("allow_".length)}`]
  if (isList(before) && isList(after)) return listPhrases(name.replace(/^allowed_/, ""), before, after)
  return [boundPhrase(name, before, after)]
}

type List = ReadonlyArray<Schema.Json> | null

const isList = (json: Schema.Json): json is List => json === null || Array.isArray(json)

/** In the lists of a policy, `null` allows everything. At most one of `before` and `after` is `null`. */
const listPhrases = (what: string, before: List, after: List): ReadonlyArray<string> => {
  if (after === null) return [`gains all ${what} (it had ${nameList(before ?? [])})`]
  if (before === null) return [`loses all ${what} but ${nameList(after)}`]
  const lost = before.filter((item) => !after.includes(item))
  const gained = after.filter((item) => !before.includes(item))
  if (lost.length === 0 && gained.length === 0) return [`has its ${what} in another order`]
  return [
    ...(lost.length === 0 ? [] : [`loses ${what} ${nameList(lost)}`]),
    ...(gained.length === 0 ? [] : [`gains ${what} ${nameList(gained)}`])
  ]
}

/** An empty list of linked services allows every service. */
const emptyAsAll = (links: List): List => (links?.length === 0 ? null : links)

const guardrailPhrases = (name: string, before: Schema.Json, after: Schema.Json): ReadonlyArray<string> => {
  if (!Array.isArray(before) || !Array.isArray(after))
    return [`has ${name} ${textOf(after)} instead of ${textOf(before)}`]
  const removed = before.filter((item) => !after.includes(item))
  const added = after.filter((item) => !before.includes(item))
  if (removed.length === 0 && added.length === 0) return [`has its ${name} in another order`]
  return [
    ...(removed.length === 0 ? [] : [`no longer has ${nameList(removed)} among its ${name}`]),
    ...(added.length === 0 ? [] : [`has ${nameList(added)} among its ${name}`])
  ]
}

const boundPhrase = (name: string, before: Schema.Json, after: Schema.Json): string => {
  if (after === null) return `gains: its ${name} of ${textOf(before)} is lifted`
  if (before === null) return `loses: its ${name} is ${textOf(after)}, where there was none`
  if (typeof before !== "number" || typeof after !== "number")
    return `has ${name} ${textOf(after)} instead of ${textOf(before)}`
  return after < before
    ? `loses: its ${name} falls from ${before} to ${after}`
    : `gains: its ${name} rises from ${before} to ${after}`
}

const maxShownNames = 20

const nameList = (items: ReadonlyArray<Schema.Json>): string =>
  items.length === 0
    ? "none"
    : items.length <= maxShownNames
      ? items.map(textOf).join(", ")
      : `${items.slice(0, maxShownNames).map(textOf).join(", ")} and ${items.length - maxShownNames} more`

const textOf = (json: Schema.Json): string =>
  json === null ? "none" : typeof json === "string" ? json : JSON.stringify(json)
