import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { eventually } from "../Eventually.ts"
import * as GatewayOnPostgres from "../GatewayOnPostgres.ts"
import * as RunningGateway from "../RunningGateway.ts"
import * as SimulatorServer from "../upstream/SimulatorServer.ts"
import { call, chat, hello } from "./Calls.ts"
import * as OtlpCollector from "./OtlpCollector.ts"
import * as OtlpSpans from "./OtlpSpans.ts"

const make = Effect.fnUntraced(function* (environment: Readonly<Record<string, string>> = {}) {
  const upstream = yield* SimulatorServer.serve()
  const collector = yield* OtlpCollector.make
  const gateway = yield* GatewayOnPostgres.start({
    environment: {
      UPSTREAM_BASE_URL: upstream.origin,
      UPSTREAM_SERVICE_KEY: "of-the-upstream",
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint,
      ...environment
    }
  })
  const key = yield* Effect.promise(() => RunningGateway.createKey(gateway))
  const exported = Effect.sync(() => OtlpSpans.read(collector.received("traces")))
  const spans = Effect.map(exported, (all) => all.flatMap((one) => one.spans))
  /** The `traceparent` that the upstream got with each request, in its four parts. */
  const parents = () =>
    upstream.requests.map(({ rawHeaders }) => {
      const at = rawHeaders.findIndex((name) => name.toLowerCase() === "traceparent")
      return at === -1 ? [] : (rawHeaders[at + 1] ?? "").split("-")
    })
  const stopped = Effect.suspend(() => {
    gateway.signal("SIGTERM")
    return Effect.promise(() => gateway.exited)
  })
  return { collector, exported, gateway, key, parents, spans, stopped }
})

const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
const clientSpan = "00f067aa0ba902b7"

const proxied = ({ name }: OtlpSpans.Span) => name === "POST /v1/chat/completions"

describe("traces", () => {
  it.live("lead from the client through the gateway to the upstream, also where the client names none", () =>
    Effect.gen(function* () {
      const { exported, gateway, key, parents, spans } = yield* make({
        OTEL_SERVICE_NAME: "gw-one",
        OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test%20bed,service.instance.id=one"
      })
      const ask = (headers: Readonly<Record<string, string>>) =>
        call(gateway, "/v1/chat/completions", key.raw, { headers, body: { model: "m", messages: hello } })
      yield* ask({ traceparent: `00-${trace}-${clientSpan}-01` })
      yield* ask({})
      const found = yield* eventually(spans, (all) => all.filter(proxied).length === 2)
      const [joined, begun] = found.filter(proxied)
      assert.deepInclude(joined, { traceId: trace, parentSpanId: clientSpan, kind: 2 })
      assert.deepInclude(begun, { parentSpanId: "", kind: 2 })
      assert.deepStrictEqual(
        parents(),
        [joined, begun].map((server) => {
          const client = found.find((span) => span.parentSpanId === server?.spanId && span.kind === 3)
          assert.deepInclude(client, { traceId: server?.traceId ?? "", name: "chat m" })
          assert.deepInclude(client?.attributes, {
            "server.address": "127.0.0.1",
            // the former conventions, as long as nobody opts in to the latest ones
            "gen_ai.system": "openai",
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "m",
            "gen_ai.response.finish_reasons": ["stop"]
          })
          assert.notProperty(client?.attributes, "gen_ai.provider.name")
          for (const name of ["gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"]) {
            assert.isNumber(client?.attributes[name], name)
          }
          return ["00", server?.traceId ?? "", client?.spanId ?? "", "01"]
        })
      )
      assert.deepInclude(joined?.attributes, {
        "http.route": "/v1/chat/completions",
        "http.response.status_code": 200,
        "gateway.model": "m",
        "gateway.key_prefix": key.raw.slice(0, 16)
      })
      for (const name of ["gateway.input_tokens", "gateway.output_tokens", "gateway.cost_usd"]) {
        assert.isNumber(joined?.attributes[name], name)
      }
      // the database works for the process as well, and that begins no trace
      const upkeep = ({ kind, parentSpanId }: OtlpSpans.Span) => parentSpanId === "" && (kind === 1 || kind === 3)
      assert.deepStrictEqual((yield* spans).filter(upkeep), [])
      assert.isTrue((yield* spans).some((span) => "db.query.text" in span.attributes))
      for (const { resource } of yield* exported) {
        assert.deepInclude(resource, {
          "service.name": "gw-one",
          "service.version": "0.1.0",
          "service.instance.id": "one",
          "svc.role": "all",
          "deployment.environment.name": "test bed"
        })
      }
    })
  )

  it.live("are those that the sampler takes, or a client that decided for it; collectors get the headers", () =>
    Effect.gen(function* () {
      const { collector, gateway, key, parents, spans, stopped } = yield* make({
        OTEL_TRACES_SAMPLER: "parentbased_always_off",
        OTEL_EXPORTER_OTLP_HEADERS: "x-tenant=mine,authorization=Bearer%20canary-header"
      })
      yield* chat(gateway, key.raw)
      const ask = (flags: string) =>
        call(gateway, "/v1/chat/completions", key.raw, {
          headers: { traceparent: `00-${trace}-${clientSpan}-${flags}` },
          body: { model: "m", messages: hello }
        })
      yield* ask("00")
      yield* ask("01")
      yield* stopped
      assert.deepStrictEqual(
        (yield* spans).filter(proxied).map(({ traceId }) => traceId),
        [trace]
      )
      assert.deepStrictEqual(
        parents().map((parts) => parts[3]),
        ["00", "00", "01"]
      )
      assert.isNotEmpty(collector.headers)
      for (const headers of collector.headers) {
        assert.deepInclude(headers, { "x-tenant": "mine", authorization: "Bearer canary-header" })
      }
      assert.notInclude(gateway.output(), "canary-header")
    })
  )
})
