import { Predicate, type Schema } from "effect"
import { OpenApi } from "effect/http-api"

const jsonType = "application/json"

/** Adds an example request body to the OpenAPI document. Tests send the examples. */
export const bodyExample = (example: Schema.JsonObject) =>
  OpenApi.annotations({
    transform: (operation) => addExampleAt(operation, ["requestBody", "content", jsonType], example)
  })

/** Adds the example below `path`. Without such a member the object stays unchanged. */
const addExampleAt = (
  object: object,
  [member, ...path]: ReadonlyArray<string>,
  example: Schema.JsonObject
): Record<string, unknown> => {
  if (member === undefined) return { ...object, example }
  const inner: unknown = Reflect.get(object, member)
  return Predicate.isObject(inner) ? { ...object, [member]: addExampleAt(inner, path, example) } : { ...object }
}
