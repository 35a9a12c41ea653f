import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { eventually } from "../Eventually.ts"
import * as GatewayOnPostgres from "../GatewayOnPostgres.ts"
import { blocks, section } from "../Guides.ts"
import * as RunningBroker from "../RunningBroker.ts"
import * as RunningGateway from "../RunningGateway.ts"
import * as SimulatorServer from "../upstream/SimulatorServer.ts"
import * as AnsweringServer from "./AnsweringServer.ts"
import { call } from "./Calls.ts"
import * as OtlpCollector from "./OtlpCollector.ts"
import * as OtlpMetrics from "./OtlpMetrics.ts"
import * as OtlpSpans from "./OtlpSpans.ts"
import * as TracedTasks from "./TracedTasks.ts"
import * as TraceTree from "./TraceTree.ts"

const client = (trace: string) => ({ trace, header: `00-${trace}-00f067aa0ba902b7-01` })
const streaming = client("4bf92f3577b34da6a3ce929d0e0e4736")
const ordering = client("0af7651916cd43dd8448eb211c80319c")

/** The tree that the guide shows under a heading. */
const shownTree = (heading: string) => blocks(section("layers/telemetry/README.md", heading), "text")[0]?.trimEnd()

const seconds = Array.from({ length: 14 }, (_, power) => 2 ** power / 100)
const tokens = Array.from({ length: 14 }, (_, power) => 4 ** power)

describe.skipIf(RunningBroker.server === null)("the telemetry of the guide", () => {
  it.live("is what a collector reads, without a word of prompts and answers", () =>
    Effect.gen(function* () {
      const name = yield* TracedTasks.named
      const collector = yield* OtlpCollector.make
      const upstream = yield* SimulatorServer.serve()
      const compat = yield* AnsweringServer.make(503, "{}")
      const moderation = yield* AnsweringServer.make(200, '{"action":"allow"}')
      const gateway = yield* GatewayOnPostgres.start({
        tasks: TracedTasks.module,
        environment: {
          TRACED_TASKS: name,
          RABBITMQ_URL: RunningBroker.server ?? "",
          UPSTREAM_BASE_URL: upstream.origin,
          UPSTREAM_SERVICE_KEY: "of-the-upstream",
          DIRECT_COMPAT_BASE_URL: compat.origin,
          DIRECT_COMPAT_SERVICE_KEY: "of-compat",
          OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint,
          OTEL_SEMCONV_STABILITY_OPT_IN: "http,gen_ai_latest_experimental"
        }
      })
      const createKey = (body = {}) => Effect.promise(() => RunningGateway.createKey(gateway, body))
      const guardrail = {
        name: "moderation",
        endpoint_url: moderation.origin,
        modes: ["pre_call", "during_call"],
        failure_policy: "fail_closed"
      }
      yield* Effect.promise(() => gateway.operate("POST", "/guardrails", guardrail))
      const guarded = yield* createKey({ guardrail_policy: { mandatory_guardrails: ["moderation"] } })
      const plain = yield* createKey()
      const spansOf = ({ trace }: ReturnType<typeof client>) =>
        OtlpSpans.read(collector.received("traces"))
          .flatMap(({ spans }) => spans)
          .filter(({ traceId }) => traceId === trace)
      const treeOf = (caller: ReturnType<typeof client>) =>
        Effect.sync(() => TraceTree.render(spansOf(caller), (text) => text.replaceAll(name, "reports")))

      const prompt = [{ role: "user", content: "canary-prompt" }]
      const streamed = yield* call(gateway, "/providers/compat/v1/chat/completions", guarded.raw, {
        headers: { traceparent: streaming.header },
        body: { model: "gpt-5", stream: true, temperature: 0.5, messages: prompt }
      })
      assert.include(streamed.text, "canary-prompt")
      const order = { gateway: gateway.proxy, key: plain.raw, topic: "canary-prompt" }
      yield* TracedTasks.order(name, "r1", order, { traceparent: ordering.header })

      yield* eventually(treeOf(streaming), (tree) => tree === shownTree("### One streamed request"), "20 seconds")
      yield* eventually(treeOf(ordering), (tree) => tree === shownTree("### One workflow"), "20 seconds")

      // each server continues the trace below the span that called it
      const spanIdsOf = (spans: ReadonlyArray<OtlpSpans.Span>, port: string) =>
        spans.flatMap(({ attributes, spanId }) => (String(attributes["server.port"]) === port ? [spanId] : []))
      for (const { origin, traceparents } of [compat, moderation]) {
        const ids = spanIdsOf(spansOf(streaming), new URL(origin).port)
        assert.sameMembers(
          ids.map((id) => `00-${streaming.trace}-${id}-01`),
          [...traceparents]
        )
      }
      const [refused, answered] = spansOf(streaming).filter((span) => span.name === "chat gpt-5")
      assert.deepInclude(refused?.attributes, { "http.response.status_code": 503, "error.type": "503" })
      assert.deepInclude(answered?.attributes, {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-5",
        "gen_ai.request.stream": true,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.response.model": "gpt-5",
        "server.address": "127.0.0.1",
        "server.port": Number(new URL(upstream.origin).port)
      })
      assert.isNumber(answered?.attributes["gen_ai.response.time_to_first_chunk"])

      const exported = (metric: string) =>
        OtlpMetrics.readHistograms(collector.received("metrics")).filter(
          ({ name }) => name === `gen_ai.client.${metric}`
        )
      const durations = yield* eventually(
        Effect.sync(() => exported("operation.duration")),
        (found) => found.some(({ attributes, count }) => count === 3 && attributes["error.type"] === undefined)
      )
      for (const [metric, unit, bounds] of [
        ["token.usage", "{token}", tokens],
        ["operation.duration", "s", seconds],
        ["operation.time_to_first_chunk", "s", seconds],
        ["operation.time_per_output_chunk", "s", seconds]
      ] as const) {
        const last = exported(metric).at(-1)
        assert.deepInclude(last, { unit, bounds }, metric)
        assert.deepInclude(last?.attributes, {
          "gen_ai.operation.name": "chat",
          "gen_ai.provider.name": "openai",
          "gen_ai.request.model": "gpt-5"
        })
      }
      assert.isTrue(exported("token.usage").some(({ attributes }) => attributes["gen_ai.token.type"] === "output"))
      // beside the three calls that were answered
      assert.isTrue(durations.some(({ attributes }) => attributes["error.type"] === "503"))

      for (const signal of ["traces", "metrics", "logs"] as const) {
        assert.isFalse(collector.received(signal).includes("canary-prompt"), signal)
      }
    })
  )
})
