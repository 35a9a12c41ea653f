import { Predicate, type Schema } from "effect"
import { OpenApi } from "effect/http-api"

const jsonType = "application/json"

/** An endpoint's request body as a caller may send it, for the documentation. Tests send it. */
export const bodyExample = (example: Schema.JsonObject) =>
  OpenApi.annotations({
    transform: (operation) => addExampleAt(operation, ["requestBody", "content", jsonType], example)
  })

/** `object` with the example behind the path, where there is such a place. */
const addExampleAt = (
  object: object,
  [member, ...path]: ReadonlyArray<string>,
  example: Schema.JsonObject
): Record<string, unknown> => {
  if (member === undefined) return { ...object, example }
  const inner: unknown = Reflect.get(object, member)
  return Predicate.isObject(inner) ? { ...object, [member]: addExampleAt(inner, path, example) } : { ...object }
}
