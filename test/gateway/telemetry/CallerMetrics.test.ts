import { assert, describe, it } from "@effect/vitest"
import { Effect, Metric, Option } from "effect"
import * as CallerMetrics from "../../../src/gateway/telemetry/CallerMetrics.ts"
import type { RequestOutcome } from "../../../src/gateway/telemetry/RequestOutcome.ts"
import * as Billing from "../../../src/gateway/usage/Billing.ts"
import * as CallbackMetrics from "../../../src/process/CallbackMetrics.ts"
import { recordOf } from "../KeyRecords.ts"

const ended = (model: string | undefined, more: Partial<RequestOutcome> = {}): RequestOutcome => ({
  status: 200,
  error: undefined,
  streamed: false,
  aborted: false,
  model,
  bill: {
    ...Billing.unbilled,
    usage: { input: 10, output: 5, cachedInput: 4, total: 15 },
    costNanos: 2_000_000_000
  },
  ...more
})

const refused = (model: string) => ended(model, { status: 403, bill: Billing.unbilled })

/** The series that were made, with their labels. */
const series = Effect.map(Metric.snapshot, (all) =>
  all.flatMap(
    ({ attributes, id, state }): ReadonlyArray<Readonly<Record<string, string | number>>> =>
      "count" in state ? [{ id, ...attributes, count: Number(state.count) }] : []
  )
)

const keyOf = (number: number) =>
  recordOf({ id: `k${number}`, prefix: `rk_live_${number}`, projectName: Option.some("search") })

const scoped = <A, E>(program: Effect.Effect<A, E>) =>
  program.pipe(Effect.provideService(Metric.MetricRegistry, new Map()))

describe("the series of callers", () => {
  it.effect("tell requests, tokens by kind and cost of a model, a project and a key", () =>
    Effect.gen(function* () {
      const count = CallerMetrics.make(yield* CallbackMetrics.make)
      const key = keyOf(1)
      count(key, "upstream", ended("gpt-5"))
      // a record that was loaded anew
      count(keyOf(1), "upstream", ended("gpt-5"))
      count(key, "upstream", refused("gpt-5"))
      count(key, "compat", ended(undefined, { bill: Billing.unbilled }))
      const labels = { model: "gpt-5", provider: "upstream", project: "search", key_prefix: "rk_live_1" }
      assert.sameDeepMembers(yield* series, [
        { id: "gateway_usage_requests_total", ...labels, status_class: "2xx", count: 2 },
        { id: "gateway_usage_requests_total", ...labels, status_class: "4xx", count: 1 },
        {
          id: "gateway_usage_requests_total",
          ...labels,
          provider: "compat",
          model: "none",
          status_class: "2xx",
          count: 1
        },
        { id: "gateway_usage_tokens_total", ...labels, kind: "input", count: 20 },
        { id: "gateway_usage_tokens_total", ...labels, kind: "output", count: 10 },
        { id: "gateway_usage_tokens_total", ...labels, kind: "cached_input", count: 8 },
        { id: "gateway_usage_cost_usd_total", ...labels, count: 4 }
      ])
    }).pipe(Effect.scoped, scoped)
  )

  it.effect("name no model that only a client named, and no more than so many", () =>
    Effect.gen(function* () {
      const count = CallerMetrics.make(yield* CallbackMetrics.make)
      const key = keyOf(1)
      for (let i = 0; i < 1_000; i++) count(key, "upstream", refused(`invented-${i}`))
      assert.lengthOf(yield* series, 1)
      for (let i = 0; i < 1_000; i++) count(key, "upstream", ended(`model-${i}`))
      const cost = (yield* series).filter((found) => found["id"] === "gateway_usage_cost_usd_total")
      assert.lengthOf(cost, CallbackMetrics.maxModelLabels + 1)
      assert.strictEqual(
        cost.reduce((sum, found) => sum + Number(found["count"]), 0),
        2_000
      )
    }).pipe(Effect.scoped, scoped)
  )

  it.effect("are bounded: further keys share one, and nothing is lost of their sum", () =>
    Effect.gen(function* () {
      const count = CallerMetrics.make(yield* CallbackMetrics.make)
      const keys = Array.from({ length: 1_500 }, (_, number) => keyOf(number))
      for (const key of keys) for (let i = 0; i < 2; i++) count(key, "upstream", ended("gpt-5"))
      const requests = (yield* series).filter((found) => found["id"] === "gateway_usage_requests_total")
      assert.lengthOf(requests, CallbackMetrics.maxCallerSeries + 1)
      const others = requests.filter((found) => found["key_prefix"] === "other")
      assert.deepStrictEqual(
        others.map((found) => found["count"]),
        [1_000]
      )
      assert.strictEqual(
        requests.reduce((sum, found) => sum + Number(found["count"]), 0),
        3_000
      )
    }).pipe(Effect.scoped, scoped)
  )
})
