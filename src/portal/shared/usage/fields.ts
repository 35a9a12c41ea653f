import type { QueryOf } from "../../api/Endpoints.ts"

/** The filters of all queries about usage, without the range. */
export type UsageFilters = Omit<QueryOf<"GET", "/admin-ui/admin/usage/summary">, "from" | "to">
export type FilterName = keyof UsageFilters

export interface FilterField {
  readonly name: FilterName
  readonly label: string
  /** Where its values come from: the records of usage by the API, a breakdown with names for people, or a short list. */
  readonly values: "listed" | "named" | "free" | ReadonlyArray<string>
}

export const filterFields: ReadonlyArray<FilterField> = [
  { name: "key_id", label: "Key", values: "named" },
  { name: "project_id", label: "Project", values: "named" },
  { name: "team_id", label: "Team", values: "listed" },
  { name: "model", label: "Model", values: "listed" },
  { name: "route", label: "Route", values: "listed" },
  { name: "status", label: "Result", values: ["success", "failure"] },
  { name: "status_code", label: "Status code", values: "free" },
  { name: "error_code", label: "Error code", values: "free" },
  { name: "denied_by", label: "Refused by", values: "free" },
  { name: "provider", label: "Provider", values: "listed" },
  { name: "service", label: "Service", values: "listed" },
  { name: "method", label: "Method", values: "free" },
  { name: "endpoint", label: "Endpoint", values: "listed" },
  { name: "client", label: "Client program", values: "listed" },
  { name: "subject", label: "Subject", values: "listed" },
  { name: "end_user", label: "End user", values: "listed" },
  { name: "session_id", label: "Session", values: "listed" },
  { name: "task_id", label: "Task", values: "listed" },
  { name: "run_id", label: "Run", values: "listed" },
  { name: "trace_id", label: "Trace", values: "free" },
  { name: "request_id", label: "Request", values: "free" },
  { name: "min_latency_ms", label: "At least (ms)", values: "free" },
  { name: "min_cost_usd", label: "At least ($)", values: "free" }
]

export const filterNames: ReadonlyArray<FilterName> = filterFields.map(({ name }) => name)
