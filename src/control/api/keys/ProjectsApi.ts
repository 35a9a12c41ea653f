import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { refusals } from "../schema/Errors.ts"
import { bodyExample } from "../schema/Examples.ts"
import { Id, timestamps } from "../schema/Fields.ts"
import { requires, skipsUnreadable } from "../schema/Security.ts"
import { ServiceNames } from "../services/ServicesApi.ts"

export const Project = Schema.Struct({
  id: Id,
  name: Schema.String,
  /** The services that the project's keys may call. If empty, they may call all that their policies allow. */
  service_names: Schema.Array(Schema.String),
  ...timestamps
}).annotate({ identifier: "Project" })
export type Project = typeof Project.Type

export const ProjectPatch = Schema.Struct({
  name: Schema.optionalKey(Schema.String),
  /** Replaces the whole list of services; `null` empties it. */
  service_names: Schema.optionalKey(Schema.NullOr(ServiceNames))
})
export type ProjectPatch = typeof ProjectPatch.Type

const params = { id: Id }

export const ProjectsApi = HttpApiGroup.make("projects")
  .annotate(OpenApi.Description, "Projects group keys and define the services that these keys may call.")
  .add(
    HttpApiEndpoint.post("create", "/", {
      payload: Schema.Struct({ name: Schema.String }),
      success: Project,
      error: refusals("invalid_project_payload", "duplicate_project")
    })
      .annotateMerge(
        OpenApi.annotations({
          summary: "Create a project",
          description: "The keys of a project share its services, its policy layer and its name in usage records."
        })
      )
      .annotateMerge(bodyExample({ name: "search" }))
      .annotateMerge(requires("settings:update")),
    HttpApiEndpoint.get("list", "/", { success: Schema.Array(Project) })
      .annotateMerge(skipsUnreadable)
      .annotate(OpenApi.Summary, "List projects by name")
      .annotateMerge(requires("usage:read")),
    HttpApiEndpoint.get("get", "/:id", {
      params,
      success: Project,
      error: refusals("missing_project")
    })
      .annotate(OpenApi.Summary, "Show a project")
      .annotateMerge(requires("operators:manage")),
    HttpApiEndpoint.patch("update", "/:id", {
      params,
      payload: ProjectPatch,
      success: Project,
      error: refusals("missing_project", "missing_service", "invalid_project_payload", "duplicate_project")
    })
      .annotateMerge(
        OpenApi.annotations({
          summary: "Change a project",
          description: "`service_names` replaces the whole list of services."
        })
      )
      .annotateMerge(requires("settings:update")),
    HttpApiEndpoint.delete("remove", "/:id", {
      params,
      success: HttpApiSchema.NoContent,
      error: refusals("missing_project", "project_in_use")
    })
      .annotateMerge(
        OpenApi.annotations({
          summary: "Delete a project",
          description: "Possible only if no key, service or usage record refers to the project."
        })
      )
      .annotateMerge(requires("settings:update"))
  )
  .prefix("/projects")
