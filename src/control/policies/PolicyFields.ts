import { Predicate, Schema } from "effect"
import { KeyPolicy, neutral } from "../../policy/KeyPolicy.ts"
import { policyFieldHelp } from "../../policy/PolicyFieldHelp.ts"
import type { PolicyField } from "../api/policies/EffectivePolicies.ts"

/** Describes the fields of a policy for forms, from the schema that decodes them. */
export const policyFields = (): ReadonlyArray<PolicyField> => {
  const { definitions, schema } = Schema.toJsonSchemaDocument(Schema.toEncoded(KeyPolicy))
  const properties = memberOf(resolved(schema, definitions), "properties")
  const unrestricted: Readonly<Record<string, Schema.Json>> = Schema.encodeSync(KeyPolicy)(neutral)
  return Object.keys(KeyPolicy.fields)
    .filter((field) => field in policyFieldHelp)
    .map((field) => ({
      field,
      help: helpOf(field),
      unrestricted: unrestricted[field] ?? null,
      ...shapeOf(memberOf(properties, field))
    }))
}

const helpOf = (field: string): string => Object.entries(policyFieldHelp).find(([name]) => name === field)?.[1] ?? ""

const memberOf = (value: unknown, name: string): unknown =>
  Predicate.hasProperty(value, name) ? value[name] : undefined

const resolved = (schema: unknown, definitions: unknown): unknown => {
  const ref = memberOf(schema, "$ref")
  return typeof ref === "string" ? memberOf(definitions, ref.slice(ref.lastIndexOf("/") + 1)) : schema
}

type Shape = Pick<PolicyField, "kind" | "choices" | "minimum" | "maximum">

/** `null` in a union means that nothing is restricted, which every kind but booleans and choices has. */
const shapeOf = (schema: unknown): Shape => {
  const options = memberOf(schema, "anyOf")
  const shape = Array.isArray(options) ? options.find((one) => memberOf(one, "type") !== "null") : schema
  const none = { choices: null, minimum: null, maximum: null }
  switch (memberOf(shape, "type")) {
    case "boolean":
      return { ...none, kind: "boolean" }
    case "array": {
      const items = memberOf(shape, "items")
      const kind = memberOf(items, "type") === "integer" ? "numbers" : "names"
      return { ...boundsOf(items), kind, choices: choicesOf(items) }
    }
    case "string":
      return { ...none, kind: "choice", choices: choicesOf(shape) }
    default:
      return { ...boundsOf(shape), kind: memberOf(shape, "type") === "integer" ? "count" : "dollars", choices: null }
  }
}

const choicesOf = (schema: unknown): ReadonlyArray<string> | null => {
  const choices = memberOf(schema, "enum")
  return Array.isArray(choices) ? choices.map(String) : null
}

/** The bounds may be in a part of the schema (`allOf`). */
const boundsOf = (schema: unknown) => {
  const parts = memberOf(schema, "allOf")
  const bound = (name: string): number | null => {
    const found = [schema, ...(Array.isArray(parts) ? parts : [])].map((part) => memberOf(part, name))
    return found.find((value) => typeof value === "number") ?? null
  }
  return { minimum: bound("minimum"), maximum: bound("maximum") }
}
