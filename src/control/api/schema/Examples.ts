import { Predicate, type Schema } from "effect"
import { OpenApi } from "effect/http-api"

const jsonType = "application/json"

/** Adds an example request body to the OpenAPI document. The tests send these examples to the API. */
export const bodyExample = (example: Schema.JsonObject) =>
  OpenApi.annotations({
    transform: (operation) => addExampleAt(operation, ["requestBody", "content", jsonType], example)
  })

/** Adds the example to the object at `path`. If a member on the path is missing, the object stays unchanged. */
const addExampleAt = (
  object: object,
  [member, ...path]: ReadonlyArray<string>,
  example: Schema.JsonObject
): Record<string, unknown> => {
  if (member === undefined) return { ...object, example }
  const inner: unknown = Reflect.get(object, member)
  return Predicate.isObject(inner) ? { ...object, [member]: addExampleAt(inner, path, example) } : { ...object }
}
