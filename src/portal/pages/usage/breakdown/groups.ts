import type { PathOf, QueryOf } from "../../../api/Endpoints.ts"
import type { FilterName } from "../../../shared/usage/fields.ts"

export type SplitName = Extract<QueryOf<"GET", "/admin-ui/admin/usage/timeseries">["split"], string>
type BreakdownPath = Extract<PathOf<"GET">, `/admin-ui/admin/usage/by-${string}`>

export interface Group {
  readonly name: string
  readonly label: string
  readonly path: BreakdownPath
  /** The server splits its series by this. Groups without one have no series of their own. */
  readonly split?: SplitName
  /** Requests can be filtered by it. */
  readonly filter?: FilterName
  /** The page of one of them. */
  readonly page?: string
}

export const groups = [
  {
    name: "project",
    label: "Project",
    path: "/admin-ui/admin/usage/by-project",
    split: "project",
    filter: "project_id",
    page: "/projects"
  },
  { name: "key", label: "Key", path: "/admin-ui/admin/usage/by-key", split: "key", filter: "key_id", page: "/keys" },
  { name: "team", label: "Team", path: "/admin-ui/admin/usage/by-team", split: "team", filter: "team_id" },
  { name: "model", label: "Model", path: "/admin-ui/admin/usage/by-model", split: "model", filter: "model" },
  {
    name: "provider",
    label: "Provider",
    path: "/admin-ui/admin/usage/by-provider",
    split: "provider",
    filter: "provider"
  },
  {
    name: "service",
    label: "Service",
    path: "/admin-ui/admin/usage/by-service",
    split: "service",
    filter: "service",
    page: "/services"
  },
  {
    name: "client",
    label: "Client program",
    path: "/admin-ui/admin/usage/by-client",
    split: "client",
    filter: "client"
  },
  {
    name: "subject",
    label: "Person (subject)",
    path: "/admin-ui/admin/usage/by-subject",
    split: "subject",
    filter: "subject"
  },
  { name: "end_user", label: "End user", path: "/admin-ui/admin/usage/by-end-user", filter: "end_user" },
  { name: "session", label: "Session", path: "/admin-ui/admin/usage/by-session", filter: "session_id" },
  { name: "task", label: "Task", path: "/admin-ui/admin/usage/by-task", filter: "task_id", page: "/tasks" },
  { name: "task_type", label: "Type of the task", path: "/admin-ui/admin/usage/by-task-type" }
] as const satisfies ReadonlyArray<Group>

export const groupOf = (name: string | undefined): Group => groups.find((group) => group.name === name) ?? groups[0]

/** Names of the requests that have no such label. They cannot be filtered by. */
export const isUnlabelled = (name: string): boolean => ["individual", "none", "unknown", "other"].includes(name)

/** The groups of models that name no model, and why requests are in them instead of in the groups of their models. */
const withoutModel: Readonly<Record<string, Unlabelled>> = {
  unknown: {
    label: "no model (unknown)",
    reason: "These requests named no model, such as lists of models, or were refused before their model was read.",
    search: {}
  },
  other: {
    label: "names that no upstream knows (other)",
    reason:
      "These requests named models that no upstream had answered by then: most were refused, or the name was wrong. Clients may send any name, so that the sums do not tell them apart. The list of requests does.",
    search: { status: "failure" }
  }
}

/** A task may be older than the index of tasks keeps them, and an index in Redis is not asked. */
const withoutType: Readonly<Record<string, Unlabelled>> = {
  unknown: {
    label: "unknown",
    reason: "These are the requests of tasks that the index of tasks in PostgreSQL does not have, or not with a type.",
    search: {}
  }
}

/** Groups that have reasons of their own for what has no label. */
const explained: Readonly<Record<string, Readonly<Record<string, Unlabelled>>>> = {
  model: withoutModel,
  task_type: withoutType
}

export interface Unlabelled {
  readonly label: string
  readonly reason: string
  /** The search that lists the same requests one by one. */
  readonly search: Readonly<Record<string, string>>
}

/** Explains a group without a label. Returns `undefined` if the group has one. */
export const unlabelledOf = (group: Pick<Group, "name">, name: string): Unlabelled | undefined => {
  if (!isUnlabelled(name)) return undefined
  return (
    explained[group.name]?.[name] ?? {
      label: name,
      reason:
        "These are the requests without a label of this kind. They cannot be told apart from the others by a filter.",
      search: {}
    }
  )
}
