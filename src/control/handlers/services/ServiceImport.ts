import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { ControlApi } from "../../api/ControlApi.ts"
import { ServiceImport } from "../../services/ServiceImport.ts"

export const layer = HttpApiBuilder.group(
  ControlApi,
  "service-import",
  Effect.fn(function* (handlers) {
    const imports = yield* ServiceImport
    return handlers.handleAll({
      import: ({ payload }) => imports.importOne(payload, "import"),
      sync: ({ payload }) => imports.importOne(payload, "sync"),
      preview: ({ payload }) => imports.preview(payload),
      activate: ({ payload }) => imports.activate(payload),
      versions: ({ query }) => imports.versions(query),
      rollback: ({ params }) => imports.rollback(params.version),
      status: ({ params }) => imports.status(params.name)
    })
  })
)
