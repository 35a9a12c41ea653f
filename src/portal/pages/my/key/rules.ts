import type { ResponseOf } from "../../../api/Endpoints.ts"
import { bytesText, countText, durationText, moneyText } from "../../../shared/words/format.ts"

type Policy = ResponseOf<"GET", "/admin-ui/v1/me">["policy"]
export type Rule = readonly [about: string, rule: string]

const hours = (allowed: ReadonlyArray<number>): string =>
  allowed.length === 0
    ? "at no hour"
    : `at ${allowed.map((hour) => `${String(hour).padStart(2, "0")}:00`).join(", ")} UTC, an hour each`

const list = (allowed: ReadonlyArray<string>): string => (allowed.length === 0 ? "none" : allowed.join(", "))

/** Paths have limits of their own, and the smaller of both holds. */
const wherePaths = "where the path allows less"

type Counted = { readonly [Name in keyof Policy]: Policy[Name] extends number | null ? Name : never }[keyof Policy]

/** Limits of one request, with the words for them. How much is left of the other limits is on the home page. */
const bounds: ReadonlyArray<readonly [field: Counted, about: string, text: (amount: number) => string]> = [
  ["max_input_tokens_per_request", "Input of one request", (count) => `at most ${countText(count)} tokens`],
  ["max_output_tokens_per_request", "Output of one request", (count) => `at most ${countText(count)} tokens`],
  ["max_cost_per_request", "Cost of one request", (dollars) => `at most ${moneyText(dollars)}`],
  ["max_concurrent_requests", "Requests at once", (count) => `at most ${countText(count)}`],
  ["max_tool_call_count", "Tools of one request", (count) => `at most ${countText(count)}`],
  ["max_request_body_bytes", "Size of one request", (bytes) => `at most ${bytesText(bytes)}, or less ${wherePaths}`],
  ["max_response_body_bytes", "Size of one answer", (bytes) => `at most ${bytesText(bytes)}, or less ${wherePaths}`],
  ["max_stream_duration_seconds", "Length of a stream", (seconds) => `at most ${durationText(seconds * 1_000)}`],
  ["unused_key_auto_disable_after_days", "Without use", (days) => `switched off after ${countText(days)} days`]
]

/** What the key may do, in plain words. What is not restricted is left out, but for the models. */
export const rulesOf = (policy: Policy): ReadonlyArray<Rule> => {
  if (policy.deny) return [["Requests", "none at the moment"]]
  const { allow_streaming, allow_tools, allowed_hours_utc, allowed_models, allowed_services, unpriced_models } = policy
  return [
    ["Models", allowed_models === null ? "all" : list(allowed_models)],
    ...(unpriced_models === "refuse" ? [["Models without a price", "not allowed"] as const] : []),
    ...(allowed_services === null || allowed_services.length === 0
      ? []
      : [["Services", list(allowed_services)] as const]),
    ...(allowed_hours_utc === null ? [] : [["When", hours(allowed_hours_utc)] as const]),
    ...(allow_streaming ? [] : [["Streamed answers", "not allowed"] as const]),
    ...(allow_tools ? [] : [["Tools", "not allowed"] as const]),
    ...bounds.flatMap(([field, about, text]): ReadonlyArray<Rule> => {
      const amount = policy[field]
      return amount === null ? [] : [[about, text(amount)]]
    })
  ]
}
