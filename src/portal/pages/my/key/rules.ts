import type { ResponseOf } from "../../../api/Endpoints.ts"
import { fieldTitle, type NamedField } from "../../../shared/fields/fieldWords.ts"
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
const bounds: ReadonlyArray<readonly [field: Extract<Counted, NamedField>, text: (amount: number) => string]> = [
  ["max_input_tokens_per_request", (count) => `at most ${countText(count)} tokens`],
  ["max_output_tokens_per_request", (count) => `at most ${countText(count)} tokens`],
  ["max_cost_per_request", (dollars) => `at most ${moneyText(dollars)}`],
  ["max_concurrent_requests", (count) => `at most ${countText(count)}`],
  ["max_tool_call_count", (count) => `at most ${countText(count)}`],
  ["max_request_body_bytes", (bytes) => `at most ${bytesText(bytes)}, or less ${wherePaths}`],
  ["max_response_body_bytes", (bytes) => `at most ${bytesText(bytes)}, or less ${wherePaths}`],
  ["max_stream_duration_seconds", (seconds) => `at most ${durationText(seconds * 1_000)}`],
  ["unused_key_auto_disable_after_days", (days) => `switched off after ${countText(days)} days`]
]

/** What the key may do, in plain words. What is not restricted is left out, but for the models. */
export const rulesOf = (policy: Policy): ReadonlyArray<Rule> => {
  if (policy.deny) return [["Requests", "none at the moment"]]
  const { allow_streaming, allow_tools, allowed_hours_utc, allowed_models, allowed_services, unpriced_models } = policy
  return [
    [fieldTitle("allowed_models"), allowed_models === null ? "all" : list(allowed_models)],
    ...(unpriced_models === "refuse" ? [[fieldTitle("unpriced_models"), "not allowed"] as const] : []),
    ...(allowed_services === null || allowed_services.length === 0
      ? []
      : [[fieldTitle("allowed_services"), list(allowed_services)] as const]),
    ...(allowed_hours_utc === null ? [] : [["When", hours(allowed_hours_utc)] as const]),
    ...(allow_streaming ? [] : [[fieldTitle("allow_streaming"), "not allowed"] as const]),
    ...(allow_tools ? [] : [[fieldTitle("allow_tools"), "not allowed"] as const]),
    ...bounds.flatMap(([field, text]): ReadonlyArray<Rule> => {
      const amount = policy[field]
      return amount === null ? [] : [[fieldTitle(field), text(amount)]]
    })
  ]
}
