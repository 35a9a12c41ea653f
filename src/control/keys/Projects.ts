import { Context, Effect, Layer, Schema } from "effect"
import { Database } from "../../services/Database.ts"
import {
  type ListedProject,
  type NewProject,
  Project,
  type ProjectPatch,
  type ProjectsQuery
} from "../api/keys/ProjectsApi.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import type { SortedCursor } from "../api/schema/Fields.ts"
import { type Actor, Audit, Snapshots } from "../audit/Audit.ts"
import { linksOf } from "../services/ServiceLinks.ts"
import type { Page } from "../store/Paging.ts"
import { requireUnchanged } from "../store/Precondition.ts"
import { onDuplicate, rowTimestamps, type StoreFailure, storedRows, toStoreFailures } from "../store/Rows.ts"
import { readSortedPage } from "../store/SortedPages.ts"
import { validateName } from "../store/Validation.ts"
import { labelColumns } from "./LabelColumns.ts"

type Missing = Refused<"missing_project">
type NameRefused = Refused<"invalid_project_payload" | "duplicate_project">

export class Projects extends Context.Service<
  Projects,
  {
    readonly list: (query: ProjectsQuery) => Effect.Effect<Page<ListedProject, SortedCursor>, StoreFailure>
    readonly get: (id: string) => Effect.Effect<ListedProject, Missing | StoreFailure>
    readonly create: (project: NewProject) => Effect.Effect<Project, NameRefused | StoreFailure, Actor>
    readonly update: (
      id: string,
      patch: ProjectPatch
    ) => Effect.Effect<
      Project,
      Missing | NameRefused | Refused<"missing_service" | "changed_since_read"> | StoreFailure,
      Actor
    >
    /** Also deletes the project's credential mapping, service links and policy layer. Fails while keys refer to it. */
    readonly remove: (id: string) => Effect.Effect<void, Missing | Refused<"project_in_use"> | StoreFailure, Actor>
  }
>()("svc/control/Projects") {
  static readonly layer = Layer.suspend(() => Layer.effect(Projects, make))
}

const defaultLimit = 500

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const links = linksOf(sql, "project")
  const columns = sql`id, name, description, owner_email, tags, created_at, updated_at, ${links.names}`

  const listed = sql`${columns}, (SELECT count(*)::int FROM api_keys WHERE project_id = projects.id AND revoked_at IS NULL) AS key_count`

  // FOR UPDATE waits for transactions that create keys in this project, and blocks later transactions of this kind.
  const lock = (id: string) =>
    Effect.flatMap(projectRows.first(sql`SELECT ${columns} FROM projects WHERE id = ${id} FOR UPDATE`), orMissing)

  return Projects.of({
    list: Effect.fn("Projects.list")(function* ({ cursor, limit = defaultLimit, ...query }) {
      const filters = [
        ...(query.q === undefined ? [] : [sql`words @@ search_query(${query.q})`]),
        ...(query.tag === undefined ? [] : [sql`tags @> ARRAY[${query.tag}]::text[]`])
      ]
      return yield* readSortedPage(
        sql,
        { columns: [["name", "text"]], order: "asc", query, cursor, limit },
        listedRows,
        ({ afterCursor, orderAndLimit, sortKey }) =>
          sql`SELECT ${listed}, ${sortKey} FROM projects WHERE ${sql.and([afterCursor, ...filters])} ${orderAndLimit}`,
        (project) => project
      )
    }, toStoreFailures),

    get: Effect.fn("Projects.get")(function* (id) {
      const project = yield* toStoreFailures(listedRows.first(sql`SELECT ${listed} FROM projects WHERE id = ${id}`))
      return yield* orMissing(project)
    }),

    create: Effect.fn("Projects.create")(function* ({ name, ...labels }) {
      const valid = yield* checkedName(name)
      return yield* audit.mutate(function* ({ write }) {
        const project = yield* projectRows
          .only(write`
            INSERT INTO projects ${sql.insert({ name: valid, ...labelColumns(labels) })} RETURNING ${columns}`)
          .pipe(duplicateRefused)
        return {
          result: project,
          auditAction: { target: "project", action: "projects:create" },
          targetId: project.id,
          snapshots: yield* snapshots(null, project),
          changes: []
        }
      })
    }),

    update: Effect.fn("Projects.update")(function* (
      id,
      { expected_updated_at, name: newName, service_names: names, ...labels }
    ) {
      const name = newName === undefined ? undefined : yield* checkedName(newName)
      const labelsToSet = labelColumns(labels)
      return yield* audit.mutate(function* ({ write }) {
        const before = yield* lock(id)
        yield* requireUnchanged(expected_updated_at, before)
        if (names !== undefined) yield* links.replace(id, names ?? [])
        const project =
          name === undefined && names === undefined && Object.keys(labelsToSet).length === 0
            ? before
            : yield* projectRows
                .only(
                  write`
                    UPDATE projects SET ${sql.update({ name: name ?? before.name, ...labelsToSet })}, updated_at = now()
                    WHERE id = ${id} RETURNING ${columns}`
                )
                .pipe(duplicateRefused)
        return {
          result: project,
          auditAction: { target: "project", action: "projects:update" },
          targetId: id,
          snapshots: yield* snapshots(before, project),
          // Gateways cache each key together with the name and services of its project.
          changes: name === undefined && names === undefined ? [] : [{ _tag: "Project", id }]
        }
      })
    }),

    remove: Effect.fn("Projects.remove")(function* (id) {
      return yield* audit.mutate(function* ({ write }) {
        const before = yield* Effect.flatMap(
          projectRows.firstOrUnreadable(sql`SELECT ${columns} FROM projects WHERE id = ${id} FOR UPDATE`),
          orMissing
        )
        const [use] = yield* sql`
          SELECT 1 FROM api_keys WHERE project_id = ${id} UNION ALL
          SELECT 1 FROM service_registrations WHERE project_id = ${id} UNION ALL
          (SELECT 1 FROM usage_events WHERE project_id = ${id} LIMIT 1) LIMIT 1`
        if (use !== undefined) {
          return yield* Effect.fail(
            new ControlError(
              "project_in_use",
              "The project cannot be deleted, because keys, services or usage records refer to it. Disable its keys instead."
            )
          )
        }
        // No foreign key deletes the policy layer, because its scope is stored as text.
        const layers = yield* write`
          DELETE FROM policy_layers WHERE layer_kind = 'project' AND scope_id = ${id.toLowerCase()} RETURNING id`
        yield* write`DELETE FROM projects WHERE id = ${id}`
        return {
          result: undefined,
          auditAction: { target: "project", action: "projects:delete" },
          targetId: id,
          snapshots: yield* snapshots(before, null),
          changes: [{ _tag: "Project", id }, ...layers.map(() => ({ _tag: "Configuration" as const }))]
        }
      })
    })
  })
})

const projectRows = storedRows(Project.pipe(Schema.fieldsAssign(rowTimestamps)), { table: "projects", key: ["id"] })
const listedRows = storedRows(Project.pipe(Schema.fieldsAssign({ ...rowTimestamps, key_count: Schema.Int })), {
  table: "projects",
  key: ["id"]
})
const snapshots = Snapshots.of(Project)

const orMissing = <A>(project: A | undefined): Effect.Effect<A, Missing> =>
  project === undefined
    ? Effect.fail(new ControlError("missing_project", "No project has this id."))
    : Effect.succeed(project)

const checkedName = (text: string): Effect.Effect<string, Refused<"invalid_project_payload">> => {
  const name = text.trim()
  const refusal = validateName(name)
  return refusal === undefined
    ? Effect.succeed(name)
    : Effect.fail(new ControlError("invalid_project_payload", `name ${refusal}.`, { param: "name" }))
}

const duplicateRefused = <A, E, R>(statement: Effect.Effect<A, E, R>) =>
  onDuplicate(
    statement,
    () => new ControlError("duplicate_project", "Another project has this name.", { param: "name" })
  )
