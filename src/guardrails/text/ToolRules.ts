import type { TextPlace } from "./Place.ts"
import { address, binary, credential, freeText, object, type Rule, reference, text, token } from "./Rule.ts"

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
  server_url: address(),
  authorization: credential,
  environment: text("tool definition").with({
    type: token,
    skills: text("tool definition").with({ type: token, source: object({ data: binary("file") }) })
  }),
  input_image_mask: object({ image_url: address("picture"), file_id: reference("picture") }),
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
  headers: freeText("tool definition").with({ Authorization: credential, authorization: credential }),
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
