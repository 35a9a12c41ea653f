import type { UsageFilters } from "../../../shared/usage/fields.ts"
import type { UsageRow } from "../../../shared/usage/useUsageEvents.ts"

type Detail = Readonly<Record<string, unknown>>

const textOf = (value: unknown): string | null => (typeof value === "string" ? value : null)
const numberOf = (value: unknown): number | null => (typeof value === "number" ? value : null)

const unknownYet = {
  key_name: null,
  project_id: null,
  team_id: null,
  denied_by: null,
  denied_in_layer: null,
  upstream_ms: null,
  first_byte_ms: null,
  gateway_ms: null,
  usage_source: "status_only",
  cached_input_tokens: null,
  cache_write_tokens: null,
  reasoning_tokens: null,
  cached_share: null,
  cost_source: "none",
  cost_mode: null,
  pricing_rule_name: null,
  http_method: null,
  endpoint_path: null,
  endpoint_template: null,
  task_id: null,
  run_id: null,
  trace_id: null,
  subject: null,
  end_user: null,
  session_id: null,
  client: null,
  fallback_count: 0,
  guardrail_action_count: 0,
  pre_call_ms: 0
} as const

const livePrefix = "live:"

/** True for a row of the live feed, whose record is not stored yet. */
export const isLive = ({ id }: Pick<UsageRow, "id">): boolean => id.startsWith(livePrefix)

/** Makes a row of what the live feed says of a request that has ended. `undefined` for what it cannot read. */
export const rowOf = (detail: Detail): UsageRow | undefined => {
  const [id, at, status] = [textOf(detail["request_id"]), numberOf(detail["at"]), numberOf(detail["status"])]
  if (id === null || at === null || status === null) return undefined
  const latency = numberOf(detail["latency_ms"]) ?? 0
  const [input, output] = [numberOf(detail["input_tokens"]), numberOf(detail["output_tokens"])]
  const code = textOf(detail["code"])
  return {
    ...unknownYet,
    id: `${livePrefix}${id}`,
    request_id: id,
    created_at: new Date(at - latency).toISOString(),
    key_id: textOf(detail["key_id"]) ?? "",
    key_prefix: textOf(detail["key_prefix"]),
    project_name: textOf(detail["project"]),
    route: textOf(detail["route"]) ?? "",
    model: textOf(detail["model"]),
    provider: textOf(detail["provider"]) ?? "",
    service_name: textOf(detail["service"]),
    status: status < 400 && code === null ? "success" : "failure",
    status_code: status,
    error_code: code,
    latency_ms: latency,
    input_tokens: input,
    output_tokens: output,
    total_tokens: input === null && output === null ? null : (input ?? 0) + (output ?? 0),
    estimated_cost_usd: numberOf(detail["cost_usd"]),
    streamed: detail["streamed"] === true
  }
}

/** The filters by which the live feed can be sorted out. Other ones ask the records, which are there two seconds later. */
const tests: Partial<Record<keyof UsageFilters, (row: UsageRow, value: string) => boolean>> = {
  key_id: ({ key_id }, value) => key_id === value,
  route: ({ route }, value) => route === value,
  model: ({ model }, value) => model === value,
  provider: ({ provider }, value) => provider === value,
  service: ({ service_name }, value) => service_name === value,
  status: ({ status }, value) => status === value,
  status_code: ({ status_code }, value) => String(status_code) === value,
  error_code: ({ error_code }, value) => error_code === value,
  request_id: ({ request_id }, value) => request_id === value,
  min_latency_ms: ({ latency_ms }, value) => latency_ms >= Number(value),
  min_cost_usd: ({ estimated_cost_usd }, value) => (estimated_cost_usd ?? 0) >= Number(value)
}

/** Returns what decides whether a row of the feed matches, or `undefined` if the feed does not say enough. */
export const matcherOf = (filters: UsageFilters): ((row: UsageRow) => boolean) | undefined => {
  const checks: Array<(row: UsageRow) => boolean> = []
  for (const [name, value] of Object.entries(filters)) {
    const test = Object.entries(tests).find(([known]) => known === name)?.[1]
    if (test === undefined) return undefined
    checks.push((row) => test(row, String(value)))
  }
  return (row) => checks.every((check) => check(row))
}
