import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { refusals } from "../schema/Errors.ts"
import { bodyExample } from "../schema/Examples.ts"
import { expectedUpdate, Id, NextSortedCursor, PageLimit, SortedCursor, timestamps } from "../schema/Fields.ts"
import { labelInputs, labels, SearchText, Tag } from "../schema/Labels.ts"
import { operation, skipsUnreadable } from "../schema/Security.ts"
import { ServiceNames } from "../services/ServicesApi.ts"

export const Project = Schema.Struct({
  id: Id,
  name: Schema.String,
  ...labels,
  /** The services that the project's keys may call. If the list is empty, only policies restrict the services. */
  service_names: Schema.Array(Schema.String),
  ...timestamps
}).annotate({ identifier: "Project" })
export type Project = typeof Project.Type

const ListedProject = Project.pipe(
  Schema.fieldsAssign({
    /** The keys of the project that are not revoked. */
    key_count: Schema.Int
  })
).annotate({ identifier: "ListedProject" })
export type ListedProject = typeof ListedProject.Type

export const NewProject = Schema.Struct({ name: Schema.String, ...labelInputs })
export type NewProject = typeof NewProject.Type

export const ProjectPatch = Schema.Struct({
  name: Schema.optionalKey(Schema.String),
  ...labelInputs,
  /** Replaces the whole list of services. `null` empties the list. */
  service_names: Schema.optionalKey(Schema.NullOr(ServiceNames)),
  ...expectedUpdate
})
export type ProjectPatch = typeof ProjectPatch.Type

const ProjectsQuery = Schema.Struct({
  q: Schema.optionalKey(SearchText),
  tag: Schema.optionalKey(Tag),
  limit: Schema.optionalKey(PageLimit),
  cursor: Schema.optionalKey(SortedCursor)
})
export type ProjectsQuery = typeof ProjectsQuery.Type

const params = { id: Id }

export const ProjectsApi = HttpApiGroup.make("projects")
  .annotate(OpenApi.Description, "Projects group keys and define the services that these keys may call.")
  .add(
    HttpApiEndpoint.post("create", "/", {
      payload: NewProject,
      success: Project,
      error: refusals("invalid_project_payload", "duplicate_project")
    })
      .annotateMerge(operation("Create a project", "settings:update"))
      .annotate(
        OpenApi.Description,
        "The keys of a project share its services, its policy layer and its name in usage records."
      )
      .annotateMerge(bodyExample({ name: "search", owner_email: "ada@example.com", tags: ["web"] })),
    HttpApiEndpoint.get("list", "/", {
      query: ProjectsQuery,
      success: HttpApiSchema.WithHeaders(Schema.Array(ListedProject), NextSortedCursor)
    })
      .annotateMerge(skipsUnreadable)
      .annotateMerge(operation("Find and list projects, by name", "usage:read"))
      .annotate(
        OpenApi.Description,
        "`q` finds projects whose name, `owner_email` and tags have words that begin with each of its words. A page has up to 500 projects."
      ),
    HttpApiEndpoint.get("get", "/:id", {
      params,
      success: ListedProject,
      error: refusals("missing_project")
    }).annotateMerge(operation("Show a project", "operators:manage")),
    HttpApiEndpoint.patch("update", "/:id", {
      params,
      payload: ProjectPatch,
      success: Project,
      error: refusals(
        "missing_project",
        "missing_service",
        "invalid_project_payload",
        "duplicate_project",
        "changed_since_read"
      )
    })
      .annotateMerge(operation("Change a project", "settings:update"))
      .annotate(OpenApi.Description, "`service_names` replaces the whole list of services."),
    HttpApiEndpoint.delete("remove", "/:id", {
      params,
      success: HttpApiSchema.NoContent,
      error: refusals("missing_project", "project_in_use")
    })
      .annotateMerge(operation("Delete a project", "settings:update"))
      .annotate(OpenApi.Description, "Possible only if no key, service or usage record refers to the project.")
  )
  .prefix("/projects")
