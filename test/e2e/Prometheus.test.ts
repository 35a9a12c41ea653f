import { assert, describe, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { eventually } from "../Eventually.ts"
import { chat } from "./Calls.ts"
import * as Deployment from "./Deployment.ts"
import { Pair } from "./Pair.ts"
import * as PrometheusProcess from "./PrometheusProcess.ts"

describe.skipIf(!Deployment.available || PrometheusProcess.binary === null)(
  "a Prometheus that scrapes two gateways",
  () => {
    layer(Pair.layer, { excludeTestServices: true })((it) => {
      it.effect("answers what dashboards ask", () =>
        Effect.gen(function* () {
          const { createKey, first, operate, second } = yield* Pair
          yield* operate("PUT", "/model-prices/gpt-5-mini", {
            input_usd_per_million: 1000,
            output_usd_per_million: 2000
          })
          const key = Effect.fnUntraced(function* (name: string) {
            const project = yield* operate("POST", "/projects", { name })
            const { id } = Schema.decodeUnknownSync(Schema.Struct({ id: Schema.String }))(project)
            return yield* createKey({ owner_type: "project", project_id: id })
          })
          const keys = [yield* key("search"), yield* key('team "blue"')]
          const targets = [first, second].map(({ control }) => new URL(control).host)
          const ask = yield* PrometheusProcess.scraping(targets)
          const traffic = Effect.forEach(keys, ({ raw }) =>
            Effect.forEach([first, second], (gateway) => chat(gateway, raw, { model: "gpt-5-mini" }))
          )
          yield* traffic
          const twoTargets = yield* eventually(ask("up == 1"), (found) => found.length === 2)
          assert.deepStrictEqual(twoTargets.map(([{ instance }]) => instance).sort(), targets.toSorted())

          // a rate needs two values of a series
          yield* eventually(ask("gateway_usage_cost_usd_total"), (found) => found.length === 4)
          yield* Effect.forEach([1, 2, 3], () => traffic)
          const cost = yield* eventually(
            ask("sum by (project, model) (increase(gateway_usage_cost_usd_total[1m]))"),
            (found) => found.length === 2 && found.every(([, dollars]) => dollars > 0)
          )
          assert.deepStrictEqual(cost.map(([{ model, project }]) => `${project}: ${model}`).sort(), [
            "search: gpt-5-mini",
            'team "blue": gpt-5-mini'
          ])
          const spent = yield* eventually(
            ask("sum by (project) (gateway_usage_cost_usd_total)"),
            (found) => found.length === 2 && found.every(([, dollars]) => dollars === found[0]?.[1])
          )
          assert.isAbove(spent[0]?.[1] ?? 0, 0)

          const tokens = yield* eventually(
            ask("sum by (kind) (gateway_usage_tokens_total)"),
            (found) => found.length === 2
          )
          assert.deepStrictEqual(tokens.map(([{ kind }]) => kind).sort(), ["input", "output"])

          const latency = yield* eventually(
            ask("histogram_quantile(0.95, sum by (route, le) (rate(gateway_request_duration_seconds_bucket[1m])))"),
            (found) => found.some(([, seconds]) => seconds > 0)
          )
          assert.deepStrictEqual(
            latency.map(([{ route }]) => route),
            ["/v1/chat/completions"]
          )
          assert.isBelow(latency[0]?.[1] ?? Number.NaN, 60)

          assert.deepStrictEqual(
            (yield* eventually(ask("max(gateway_usage_records_queued)"), (found) => found[0]?.[1] === 0)).length,
            1
          )
          const servers = yield* ask("min by (dependency) (svc_dependency_up)")
          assert.deepStrictEqual(servers.map(([{ dependency }, up]) => `${dependency} ${up}`).sort(), [
            "database 1",
            "redis 1"
          ])
          const builds = yield* ask("count by (version, role) (svc_build_info)")
          assert.deepStrictEqual(builds.map(([{ role, version }]) => `${role} ${version}`).sort(), [
            "all 0.1.0",
            "gateway 0.1.0"
          ])
          for (const metric of [
            "process_resident_memory_bytes",
            "process_cpu_seconds_total",
            "nodejs_eventloop_lag_p99_seconds"
          ]) {
            assert.strictEqual((yield* ask(metric)).length, 2, metric)
          }
        })
      )

      it.effect("finds a description of every metric", () =>
        Effect.gen(function* () {
          const { first, second } = yield* Pair
          for (const { control } of [first, second]) {
            const page = yield* Effect.promise(() =>
              fetch(`${control}/admin-ui/metrics`).then((answer) => answer.text())
            )
            const named = (word: string) =>
              [...page.matchAll(new RegExp(`^# ${word} (\\S+)`, "gm"))].map(([, name]) => name)
            assert.deepStrictEqual(named("HELP"), named("TYPE"))
            assert.isAbove(named("HELP").length, 20)
          }
        })
      )
    })
  }
)
