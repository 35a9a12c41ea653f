import { isJsonObject } from "../../messaging/envelope/Envelope.ts"
import type { Check } from "./SchemaVisit.ts"

const maxParts = 10
const maxText = 60
const maxDepth = 4

/** Returns a text of the schema in quotation marks, cut where it is long. */
export const quoted = (value: unknown): string => {
  const text = typeof value === "string" ? value : "a value"
  return JSON.stringify(clipped(text))
}

export const clipped = (text: string): string => (text.length > maxText ? `${text.slice(0, maxText)}…` : text)

const literal = (value: unknown): string =>
  typeof value === "string" ? quoted(value) : typeof value === "object" && value !== null ? "an object" : String(value)

/** Says that a value is not what a schema expects. */
export const unfit = (schema: unknown, check: Check): string => {
  const words = expected(schema, check)
  return words === unnamed ? "has no form that the schema allows" : `must be ${words}`
}

/** Says that a value is what a schema excludes. */
export const unwanted = (schema: unknown, check: Check): string => {
  const words = expected(schema, check)
  return words === unnamed ? "has a form that the schema excludes" : `must not be ${words}`
}

const unnamed = "another value"

/** Names what a schema expects, as handlers name it in their mistakes: `string | null`. */
export const expected = (schema: unknown, check: Check, depth = 0): string => {
  if (!isJsonObject(schema) || depth > maxDepth) return unnamed
  const { $ref, anyOf, enum: values, oneOf, type } = schema
  if (Array.isArray(values)) return alternatives(values.slice(0, maxParts + 1).map(literal))
  if ("const" in schema) return literal(schema["const"])
  const tags = tagsOf(schema)
  if (tags !== "") return `object with ${tags}`
  if (typeof type === "string") return type === "integer" ? "an integer" : clipped(type)
  if (Array.isArray(type)) return alternatives(type.slice(0, maxParts + 1).map((one) => clipped(String(one))))
  const forms = Array.isArray(anyOf) ? anyOf : Array.isArray(oneOf) ? oneOf : undefined
  if (forms !== undefined)
    return alternatives(forms.slice(0, maxParts + 1).map((one) => expected(one, check, depth + 1)))
  return $ref === undefined ? unnamed : expected(check.resolve($ref), check, depth + 1)
}

const alternatives = (parts: ReadonlyArray<string>): string => {
  const distinct = [...new Set(parts)]
  const shown = distinct.slice(0, maxParts).join(" | ")
  return distinct.length > maxParts ? `${shown} | …` : shown
}

/** The members that tell one form of an object from others, because a single text is allowed. */
const tagsOf = (schema: unknown): string =>
  literalsOf(schema)
    .filter(([, values]) => values.length === 1)
    .slice(0, 3)
    .map(([name, [value]]) => `${clipped(name)} ${literal(value)}`)
    .join(" and ")

type Literals = readonly [name: string, values: ReadonlyArray<unknown>]

/** Returns the members of an object whose values are listed in the schema. */
export const literalsOf = (schema: unknown): ReadonlyArray<Literals> => {
  const properties = isJsonObject(schema) ? schema["properties"] : undefined
  if (!isJsonObject(properties)) return []
  return Object.entries(properties).flatMap(([name, property]): ReadonlyArray<Literals> => {
    if (!isJsonObject(property)) return []
    if ("const" in property) return [[name, [property["const"]]]]
    const { enum: values } = property
    return Array.isArray(values) ? [[name, values]] : []
  })
}
