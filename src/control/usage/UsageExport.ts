import { Array as Arr, DateTime, Effect, Schema, Stream } from "effect"
import { Csv } from "effect/encoding"
import { UsageEvent, UsageTotal } from "../api/usage/UsageApi.ts"

/** Clients may read the columns by position, so new columns are added at the end. */
const columns = [
  "request_id",
  "key_id",
  "project_id",
  "route",
  "model",
  "provider",
  "status",
  "status_code",
  "latency_ms",
  "input_tokens",
  "output_tokens",
  "total_tokens",
  "estimated_cost_usd",
  "service_name",
  "task_id",
  "run_id",
  "trace_id",
  "fallback_count",
  "guardrail_action_count",
  "created_at",
  "cost_source",
  "cost_mode",
  "pricing_rule_name",
  "http_method",
  "endpoint_path",
  "endpoint_template",
  "key_name",
  "key_prefix",
  "project_name",
  "team_id",
  "upstream_ms",
  "first_byte_ms",
  "gateway_ms",
  "subject",
  "end_user",
  "session_id",
  "client",
  "cached_share",
  "denied_by",
  "denied_in_layer",
  "pre_call_ms"
] as const satisfies ReadonlyArray<keyof UsageEvent>

/** Spreadsheets run such text as a formula, even with full-width characters or after whitespace. */
const formulaPattern = /^(?:[\t\r\n]|\s*[=+\-@＝＋－＠])/

/** An apostrophe keeps spreadsheets from running a cell as a formula. */
const disarmed = (text: string): string => (formulaPattern.test(text) ? `'${text}` : text)

/** Writes at most nine decimals (one nano-dollar), without an exponent. */
const dollars = (usd: number): string => usd.toFixed(9).replace(/\.?0+$/, "")

const rowOf = (event: UsageEvent): Csv.Row => {
  const shown = withZeroTokens(event)
  return columns.map((column) => {
    const value = shown[column]
    if (value === null) return ""
    if (DateTime.isDateTime(value)) return DateTime.formatIso(value)
    return typeof value === "number" && column === "estimated_cost_usd" ? dollars(value) : disarmed(String(value))
  })
}

const withZeroTokens = (event: UsageEvent): UsageEvent => ({
  ...event,
  input_tokens: event.input_tokens ?? 0,
  output_tokens: event.output_tokens ?? 0,
  total_tokens: event.total_tokens ?? 0,
  cached_input_tokens: event.cached_input_tokens ?? 0,
  cache_write_tokens: event.cache_write_tokens ?? 0,
  reasoning_tokens: event.reasoning_tokens ?? 0
})

type Batches = Stream.Stream<ReadonlyArray<UsageEvent>>
type Bytes = Stream.Stream<Uint8Array>

export const csv = (batches: Batches): Bytes =>
  Stream.succeed<ReadonlyArray<Csv.Row>>([columns]).pipe(
    Stream.concat(Stream.map(batches, Arr.map(rowOf))),
    Stream.flattenIterable,
    Stream.pipeThroughChannel(Csv.encode())
  )

const encodeSummary = Schema.encodeSync(Schema.fromJsonString(Schema.toCodecJson(UsageTotal)))
const encodeEvents = Schema.encodeEffect(Schema.toCodecJson(Schema.Array(UsageEvent)))

/** The format is `{"summary":…,"rows":[…]}`. */
export const json = (summary: UsageTotal, batches: Batches): Bytes => {
  const rows = batches.pipe(
    Stream.filter((events) => events.length > 0),
    Stream.mapEffect((events) => Effect.orDie(encodeEvents(events.map(withZeroTokens)))),
    Stream.map((encoded) => JSON.stringify(encoded).slice(1, -1))
  )
  return Stream.succeed(`{"summary":${encodeSummary(summary)},"rows":[`).pipe(
    Stream.concat(Stream.intersperse(rows, ",")),
    Stream.concat(Stream.succeed("]}")),
    Stream.encodeText
  )
}
