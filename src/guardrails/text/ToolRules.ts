import type { TextPlace } from "./Place.ts"
import { freeText, object, type Rule, text, token } from "./Rule.ts"

/** A JSON Schema. Its property names are the user's; its keywords with fixed words are the protocol's. */
const schema = (place: TextPlace): Rule => {
  const rule = freeText(place)
  const values = freeText(place)
  const named = freeText(place).withOthers(rule)
  return rule.with({
    ...Object.fromEntries(
      ["type", "required", "format", "$ref", "$schema", "$id", "$anchor"].map((name) => [name, token])
    ),
    ...Object.fromEntries(
      ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"].map((name) => [name, named])
    ),
    ...Object.fromEntries(["default", "examples", "const", "enum"].map((name) => [name, values]))
  })
}

const parameters = schema("tool definition")

/** The definition of a tool in the formats of all routes: `function` and `custom` nest it once more. */
const definition = text("tool definition")
export const toolDefinitions: Rule = definition.with({
  name: token,
  server_label: token,
  connector_id: token,
  server_url: token,
  authorization: token,
  allowed_callers: token,
  allowed_tools: token,
  require_approval: token,
  ranker: token,
  search_context_size: token,
  syntax: token,
  parameters,
  input_schema: parameters,
  output_schema: parameters,
  input_examples: freeText("tool definition"),
  headers: freeText("tool definition"),
  filters: freeText("tool definition"),
  function: definition,
  custom: definition,
  tools: definition,
  cache_control: token
})

const outputSchema = schema("output format")

/** The format that an answer must have: a name, a description and a JSON Schema. */
export const outputFormat: Rule = text("output format").with({ name: token, schema: outputSchema })
outputFormat.with({ json_schema: outputFormat })

export const toolChoice: Rule = object({ name: token, mode: token, server_label: token })
toolChoice.with({ function: toolChoice, custom: toolChoice, tools: toolChoice, allowed_tools: toolChoice })
