import { Effect, type Scope } from "effect"
import { eventually } from "../Eventually.ts"
import * as AnsweringServer from "../e2e/AnsweringServer.ts"
import { call, chat } from "../e2e/Calls.ts"
import * as TracedTasks from "../e2e/TracedTasks.ts"
import * as GatewayOnPostgres from "../GatewayOnPostgres.ts"
import * as LocalPort from "../LocalPort.ts"
import * as RunningBroker from "../RunningBroker.ts"
import * as RunningGateway from "../RunningGateway.ts"
import { connect } from "../status/EventClient.ts"
import * as SimulatorServer from "../upstream/SimulatorServer.ts"
import * as LiveMetrics from "./LiveMetrics.ts"

/** One process that does everything once that operators look at. */
export const metrics: Effect.Effect<LiveMetrics.LiveMetrics, never, Scope.Scope> = Effect.gen(function* () {
  const name = yield* TracedTasks.named
  const upstream = yield* SimulatorServer.serve()
  const compat = yield* AnsweringServer.make(503, "{}")
  const gateway = yield* GatewayOnPostgres.start({
    tasks: TracedTasks.module,
    environment: {
      TRACED_TASKS: name,
      LOG_LEVEL: "info",
      RABBITMQ_URL: RunningBroker.server ?? "",
      UPSTREAM_BASE_URL: upstream.origin,
      UPSTREAM_SERVICE_KEY: "of-the-upstream",
      DIRECT_COMPAT_BASE_URL: compat.origin,
      DIRECT_COMPAT_SERVICE_KEY: "of-compat"
    }
  })
  const operate = (method: string, path: string, body?: unknown) =>
    Effect.promise(() => gateway.operate(method, path, body))
  const createKey = (body: Readonly<Record<string, unknown>> = {}) =>
    Effect.promise(() => RunningGateway.createKey(gateway, body))

  yield* guardedRequests(gateway, operate, createKey)
  yield* refusals(gateway, createKey)
  yield* operate("POST", "/provider-health/check")
  yield* workflows(name, gateway, (yield* createKey()).raw)
  const page = Effect.promise(() => fetch(`${gateway.control}/admin-ui/metrics`).then((answer) => answer.text()))
  const read = yield* eventually(
    Effect.map(page, (page) => (isMeasured(page) ? page : undefined)),
    (page) => page !== undefined
  )
  return LiveMetrics.read(read ?? "")
})

/** Queues are measured soon after the start, and usage records are written in batches. */
const isMeasured = (page: string): boolean =>
  page.includes("svc_queue_messages{") && /^gateway_usage_records_written_total [1-9]/m.test(page)

type CreateKey = (body?: Readonly<Record<string, unknown>>) => Effect.Effect<{ readonly raw: string }>

/** Requests that cost, stream, fall back, are guarded, and whose guardrail is gone. */
const guardedRequests = Effect.fnUntraced(function* (
  gateway: RunningGateway.RunningGateway,
  operate: (method: string, path: string, body?: unknown) => Effect.Effect<unknown>,
  createKey: CreateKey
) {
  yield* operate("PUT", "/model-prices/gpt-5", { input_usd_per_million: 1000, output_usd_per_million: 2000 })
  const gone = `http://127.0.0.1:${yield* LocalPort.free}`
  yield* operate("POST", "/guardrails", { name: "gone", endpoint_url: gone, failure_policy: "fail_open" })
  const key = yield* createKey({ guardrail_policy: { mandatory_guardrails: ["gone", "pii-redact"] } })
  yield* chat(gateway, key.raw, { model: "gpt-5" })
  yield* chat(gateway, key.raw, { model: "gpt-5", stream: true })
  yield* call(gateway, "/providers/compat/v1/chat/completions", key.raw, { body: { model: "gpt-5", messages: [] } })
  yield* chat(gateway, key.raw, { model: "simulate-500" })
})

/** One refusal for each kind of limit. */
const refusals = Effect.fnUntraced(function* (gateway: RunningGateway.RunningGateway, createKey: CreateKey) {
  yield* chat(gateway, "rk_live_unknown")
  const refusing = [{ deny: true }, { rpm_limit: 0 }, { daily_budget_usd: 0 }]
  for (const policy of refusing) yield* chat(gateway, (yield* createKey({ policy })).raw)
})

/** A workflow with a retry, followed by a client, and one that is dead-lettered and replayed. */
const workflows = Effect.fnUntraced(function* (name: string, gateway: RunningGateway.RunningGateway, key: string) {
  const reader = yield* connect(`${gateway.status}/events/w1`)
  yield* TracedTasks.order(name, "w1", { gateway: gateway.proxy, key, topic: "otters" })
  yield* TracedTasks.order(name, "w2", { topic: "nothing else" })
  yield* reader.until(({ text }) => text.includes('"completed"'))
  const indexed = Effect.promise(() => fetch(`${gateway.status}/dlq/messages`).then((answer) => answer.text()))
  const listed = yield* eventually(indexed, (text) => text.includes("dlq_id"))
  const replay = `${gateway.status}/dlq/messages/${/"dlq_id":"([^"]+)"/.exec(listed)?.[1]}/replay`
  yield* Effect.promise(() => fetch(replay, { method: "POST" }).then((answer) => answer.text()))
})
