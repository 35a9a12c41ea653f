import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { refusals } from "./Errors.ts"
import { Id, stamps } from "./Fields.ts"
import { requires } from "./Security.ts"

export const Project = Schema.Struct({ id: Id, name: Schema.String, ...stamps })
export type Project = typeof Project.Type

const params = { id: Id }

export const ProjectsApi = HttpApiGroup.make("projects")
  .add(
    HttpApiEndpoint.post("create", "/", {
      payload: Schema.Struct({ name: Schema.String }),
      success: Project,
      error: refusals("invalid_project_payload", "duplicate_project")
    }).annotateMerge(requires("settings:update")),
    HttpApiEndpoint.get("list", "/", { success: Schema.Array(Project) }).annotateMerge(requires("usage:read")),
    HttpApiEndpoint.get("get", "/:id", {
      params,
      success: Project,
      error: refusals("missing_project")
    }).annotateMerge(requires("operators:manage")),
    HttpApiEndpoint.patch("update", "/:id", {
      params,
      payload: Schema.Struct({ name: Schema.optionalKey(Schema.String) }),
      success: Project,
      error: refusals("missing_project", "invalid_project_payload", "duplicate_project")
    }).annotateMerge(requires("settings:update")),
    HttpApiEndpoint.delete("remove", "/:id", {
      params,
      success: HttpApiSchema.NoContent,
      error: refusals("missing_project", "project_in_use")
    }).annotateMerge(requires("settings:update"))
  )
  .prefix("/projects")
