import type { Schema } from "effect"
import { type FieldDifference, fieldsBetween } from "./Difference.ts"

/** What a change of its fields means for a key, in one sentence. */
export const sentence = (key: string, fields: ReadonlyArray<FieldDifference>): string =>
  `Key ${key} ${fields.flatMap(meaning).join("; ")}.`

/** The same for a policy layer, and over how many keys it lies. */
export const layerSentence = (
  layer: string,
  keys: number,
  before: Schema.JsonObject,
  after: Schema.JsonObject
): string => {
  const said = fieldsBetween(before, after)
    .filter(({ path }) => path.includes("."))
    .flatMap(meaning)
  return `Layer ${layer}, over ${keys === 1 ? "1 key" : `${keys} keys`}, ${said.join("; ") || "restricts nothing"}.`
}

const policyOf = "policy."
const guardrailsOf = "guardrail_policy."
const sharedOf = "shared."

const meaning = ({ after, before, path }: FieldDifference): ReadonlyArray<string> => {
  const name = path.startsWith(policyOf) ? path.slice(policyOf.length) : path
  switch (name) {
    case "deny":
      return [after === true ? "is denied everything" : "is no longer denied everything"]
    case "disabled":
      return [after === true ? "is disabled and loses everything" : "is enabled again"]
    case "expires_at":
      return [after === null ? `no longer expires (it would on ${text(before)})` : `expires on ${text(after)}`]
    case "service_names":
      return isList(before) && isList(after) ? lists("services", noneIsAll(before), noneIsAll(after)) : []
    case "rotation_due_at":
      return [after === null ? "is no longer due for rotation" : `is due for rotation on ${text(after)}`]
  }
  if (path.startsWith(sharedOf)) return [bounds(`shared ${path.slice(sharedOf.length)}`, before, after)]
  if (path.startsWith(guardrailsOf)) return guardrails(path.slice(guardrailsOf.length), before, after)
  if (path === name) return [`has ${name} ${text(after)} instead of ${text(before)}`]
  if (name.startsWith("allow_")) return [`${after === true ? "gains" : "loses"} ${name.slice("allow_".length)}`]
  if (isList(before) && isList(after)) return lists(name.replace(/^allowed_/, ""), before, after)
  return [bounds(name, before, after)]
}

type List = ReadonlyArray<Schema.Json> | null

const isList = (json: Schema.Json): json is List => json === null || Array.isArray(json)

/** `null` is everything; a pair of nulls is not a difference. */
const lists = (what: string, before: List, after: List): ReadonlyArray<string> => {
  if (after === null) return [`gains all ${what} (it had ${names(before ?? [])})`]
  if (before === null) return [`loses all ${what} but ${names(after)}`]
  const lost = before.filter((item) => !after.includes(item))
  const gained = after.filter((item) => !before.includes(item))
  if (lost.length === 0 && gained.length === 0) return [`has its ${what} in another order`]
  return [
    ...(lost.length === 0 ? [] : [`loses ${what} ${names(lost)}`]),
    ...(gained.length === 0 ? [] : [`gains ${what} ${names(gained)}`])
  ]
}

/** No link leads to every service. */
const noneIsAll = (links: List): List => (links?.length === 0 ? null : links)

const guardrails = (name: string, before: Schema.Json, after: Schema.Json): ReadonlyArray<string> => {
  if (!Array.isArray(before) || !Array.isArray(after)) return [`has ${name} ${text(after)} instead of ${text(before)}`]
  const left = before.filter((item) => !after.includes(item))
  const come = after.filter((item) => !before.includes(item))
  if (left.length === 0 && come.length === 0) return [`has its ${name} in another order`]
  return [
    ...(left.length === 0 ? [] : [`no longer has ${names(left)} among its ${name}`]),
    ...(come.length === 0 ? [] : [`has ${names(come)} among its ${name}`])
  ]
}

const bounds = (name: string, before: Schema.Json, after: Schema.Json): string => {
  if (after === null) return `gains: its ${name} of ${text(before)} is lifted`
  if (before === null) return `loses: its ${name} is ${text(after)}, where there was none`
  if (typeof before !== "number" || typeof after !== "number")
    return `has ${name} ${text(after)} instead of ${text(before)}`
  return after < before
    ? `loses: its ${name} falls from ${before} to ${after}`
    : `gains: its ${name} rises from ${before} to ${after}`
}

const shownNames = 20

const names = (items: ReadonlyArray<Schema.Json>): string =>
  items.length === 0
    ? "none"
    : items.length <= shownNames
      ? items.map(text).join(", ")
      : `${items.slice(0, shownNames).map(text).join(", ")} and ${items.length - shownNames} more`

const text = (json: Schema.Json): string =>
  json === null ? "none" : typeof json === "string" ? json : JSON.stringify(json)
