import type { KeyPolicy } from "./KeyPolicy.ts"

/** What each field of a policy does, in a sentence for people. */
export const policyFieldHelp: Readonly<Record<keyof KeyPolicy, string>> = {
  deny: "Refuses every request.",
  allowed_routes: "Only requests to these routes are allowed.",
  allowed_models: "Only these models are allowed. A name may end with *, as in gpt-5*.",
  allowed_providers: "Only these kinds of upstreams are allowed.",
  allowed_services: "Only these registered services are allowed.",
  allowed_hours_utc: "Requests are allowed only in these hours of the day (UTC).",
  allow_streaming: "Answers may be streamed.",
  allow_tools: "Requests may name tools.",
  rpm_limit: "Requests in a minute.",
  tpm_limit: "Tokens in a minute, those of the request and of the answer.",
  max_requests_per_day: "Requests in a day (UTC).",
  max_tokens_per_day: "Tokens in a day (UTC), those of requests and of answers.",
  daily_budget_usd: "US dollars in a day (UTC).",
  monthly_budget_usd: "US dollars in a month (UTC).",
  max_cost_per_request: "US dollars that one request may cost, as estimated before it is sent.",
  unpriced_models:
    "What a model without a price costs: flat is $0.01 a request, dearest is the highest price of the price list, and refuse refuses the request.",
  max_input_tokens_per_request: "Tokens that one request may send.",
  max_output_tokens_per_request: "Tokens that one answer may have.",
  unused_key_auto_disable_after_days: "A key that nobody used for so many days is disabled at its next use.",
  max_request_body_bytes: "Bytes that the body of a request may have.",
  max_response_body_bytes: "Bytes that the body of an answer may have, unless it is streamed.",
  max_stream_duration_seconds: "Seconds that a streamed answer may take.",
  max_sse_event_bytes: "Bytes that one event of a streamed answer may have.",
  max_tool_call_count: "Tools that one request may name.",
  max_tool_schema_bytes: "Bytes that the definitions of tools may have in one request.",
  max_concurrent_requests: "Requests of one key that may run at once in each gateway process."
}
