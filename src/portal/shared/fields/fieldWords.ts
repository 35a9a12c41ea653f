/** The fields of the API that people have a word for. Each page says it. */
export const fieldWords = {
  rpm_limit: "requests a minute",
  tpm_limit: "tokens a minute",
  max_requests_per_day: "requests a day",
  max_tokens_per_day: "tokens a day",
  daily_budget_usd: "budget of the day",
  monthly_budget_usd: "budget of the month",
  unpriced_models: "models without a price",
  max_concurrent_requests: "requests at once",
  allowed_models: "models",
  allowed_services: "services",
  allow_streaming: "streamed answers",
  allow_tools: "tools",
  max_input_tokens_per_request: "input of one request",
  max_output_tokens_per_request: "output of one request",
  max_cost_per_request: "cost of one request",
  max_tool_call_count: "tools of one request",
  max_request_body_bytes: "size of one request",
  max_response_body_bytes: "size of one answer",
  max_stream_duration_seconds: "length of a stream",
  unused_key_auto_disable_after_days: "disabled after days without use",
  expires_at: "expires",
  rotation_due_at: "rotation due",
  base_url: "address",
  upstream_base_url: "address",
  endpoint_url: "address",
  route_pattern: "path",
  allowed_methods: "methods"
} as const

export type NamedField = keyof typeof fieldWords

/** Returns the word for a field, or `undefined` if people call it as the API does. */
export const fieldWord = (name: string): string | undefined =>
  Object.entries(fieldWords).find(([known]) => known === name)?.[1]

export const capitalized = (word: string): string => word.slice(0, 1).toUpperCase() + word.slice(1)

/** `Requests a minute`. */
export const fieldTitle = (name: NamedField): string => capitalized(fieldWords[name])

/** `Requests a minute (rpm_limit)`, for places that take only a string. */
export const fieldLabel = (name: string): string => {
  const word = fieldWord(name)
  return word === undefined ? name : `${capitalized(word)} (${name})`
}
