import { errorResponse, type Family, jsonResponse, type Moment, type SimulatedResponse } from "./SimulatedResponse.ts"

/** The model list of both APIs. Each client reads only the fields that it knows. */
const models = ["simulator-large", "simulator-small", "simulator-reasoning", "simulator-embedding"].map((id) => ({
  id,
  object: "model",
  created: 1_767_225_600,
  owned_by: "simulator",
  type: "model",
  display_name: id,
  created_at: "2026-01-01T00:00:00Z"
}))

export const listModels = (): SimulatedResponse =>
  jsonResponse({
    object: "list",
    data: models,
    has_more: false,
    first_id: models.at(0)?.id ?? null,
    last_id: models.at(-1)?.id ?? null
  })

export const getModel = (id: string, family: Family, moment: Moment): SimulatedResponse => {
  const model = models.find((one) => one.id === id)
  return model === undefined
    ? errorResponse(family, moment, 404, `The model '${id}' does not exist.`, {
        code: "model_not_found",
        param: "model"
      })
    : jsonResponse(model)
}
