import type { PathOf, QueryOf } from "../../../api/Endpoints.ts"
import type { FilterName } from "../../../shared/usage/fields.ts"
import { unlabelledOf } from "../../../shared/usage/unlabelled.ts"

export type SplitName = Extract<QueryOf<"GET", "/admin-ui/admin/usage/timeseries">["split"], string>
type BreakdownPath = Extract<PathOf<"GET">, `/admin-ui/admin/usage/by-${string}`>

export interface Group {
  readonly name: string
  readonly label: string
  readonly path: BreakdownPath
  /** The server splits its series by this. Groups without one have no series of their own. */
  readonly split?: SplitName
  /** Requests can be filtered by it alone. */
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
  { name: "endpoint", label: "Endpoint", path: "/admin-ui/admin/usage/by-endpoint", split: "endpoint" },
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
  {
    name: "task_type",
    label: "Type of the task",
    path: "/admin-ui/admin/usage/by-task-type",
    split: "task_type"
  }
] as const satisfies ReadonlyArray<Group>

export const groupOf = (name: string | undefined): Group => groups.find((group) => group.name === name) ?? groups[0]

/** Returns the filters that leave the requests of one group, or `undefined` if no filter does. */
export const filtersOf = ({ filter, name }: Group, of: string): Readonly<Record<string, string>> | undefined => {
  if (unlabelledOf(name, of) !== undefined) return undefined
  if (filter !== undefined) return { [filter]: of }
  // the API names an endpoint by its method and its path, which are two filters
  const [, method, endpoint] = name === "endpoint" ? (/^(\S+) (.+)$/.exec(of) ?? []) : []
  return method === undefined || endpoint === undefined ? undefined : { method, endpoint }
}
