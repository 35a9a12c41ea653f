import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { root } from "../Guides.ts"
import * as Rules from "./Rules.ts"

/** Series by their values in each minute: `0+6x60` grows by 6, `1+0x60` stays. */
type Series = Readonly<Record<string, string>>

interface Example {
  readonly fires: Series
  readonly quiet: Series
}

const target = 'job="svc",instance="one"'
const other = 'job="svc",instance="two"'

/** For an hour: a value that stays, and one that grows by as much in each minute. */
const stays = (value: number) => `${value}+0x60`
const grows = (by: number) => `0+${by}x60`
/** True for three minutes of the hour only. */
const spike = (usual: number, high: number) => `${usual}+0x40 ${high}+0x2 ${usual}+0x20`

const requests = (failures: number) => ({
  [`gateway_requests_total{${target}}`]: grows(100),
  [`gateway_requests_by_dimension_total{${target},status_class="5xx"}`]: grows(failures),
  [`gateway_requests_by_dimension_total{${target},status_class="2xx"}`]: grows(100 - failures)
})
const durations = (over60: number) => ({
  [`gateway_request_duration_seconds_bucket{${target},route="/v1/messages",le="60"}`]: grows(100 - over60),
  [`gateway_request_duration_seconds_bucket{${target},route="/v1/messages",le="120"}`]: grows(100),
  [`gateway_request_duration_seconds_bucket{${target},route="/v1/messages",le="+Inf"}`]: grows(100)
})
const readiness = (role: string, ready: readonly [string, string]) => ({
  [`svc_build_info{${target},role="${role}"}`]: stays(1),
  [`svc_build_info{${other},role="${role}"}`]: stays(1),
  [`svc_ready{${target}}`]: ready[0],
  [`svc_ready{${other}}`]: ready[1],
  // a process of another role
  'svc_build_info{job="svc",instance="three",role="control"}': stays(1),
  'svc_ready{job="svc",instance="three"}': stays(1)
})
/** A supervisor with this number of workers that respond, of two. */
const supervised = (ready: number) => ({
  [`svc_build_info{${target},role="gateway"}`]: stays(1),
  ...(ready > 0 && { [`svc_ready{${target},worker="1"}`]: stays(1) }),
  [`svc_workers_wanted{${target}}`]: stays(2),
  [`svc_workers_ready{${target}}`]: stays(ready)
})
const usageRecords = (queued: number, written: number) => ({
  [`gateway_usage_records_queued{${target}}`]: stays(queued),
  [`gateway_usage_records_written_total{${target}}`]: grows(written)
})
const dependency = (name: string, up: string) => ({
  [`svc_dependency_up{${target},dependency="${name}"}`]: up,
  [`svc_dependency_up{${other},dependency="${name}"}`]: stays(1),
  [`svc_dependency_up{${other},dependency="another"}`]: stays(0)
})
const circuit = (state: string) => ({
  [`gateway_circuit_breaker_state{${target},provider="upstream",name="openai",state="open"}`]: stays(
    state === "open" ? 1 : 0
  ),
  [`gateway_circuit_breaker_state{${target},provider="upstream",name="openai",state="closed"}`]: stays(
    state === "open" ? 0 : 1
  )
})
const handled = (failed: number) => ({
  [`svc_messaging_handler_duration_seconds_count{${target},queue="mail",outcome="failed"}`]: grows(failed),
  [`svc_messaging_handler_duration_seconds_count{${target},queue="mail",outcome="succeeded"}`]: grows(10 - failed)
})
const lag = (late: number) => ({
  [`svc_status_hub_lag_seconds_bucket{${target},le="30"}`]: grows(100 - late),
  [`svc_status_hub_lag_seconds_bucket{${target},le="300"}`]: grows(100),
  [`svc_status_hub_lag_seconds_bucket{${target},le="+Inf"}`]: grows(100)
})

const examples: Readonly<Record<string, Example>> = {
  GatewayErrorRatioHigh: { fires: requests(6), quiet: requests(4) },
  GatewayLatencyHigh: { fires: durations(10), quiet: durations(4) },
  GatewayNotReady: {
    fires: readiness("gateway", [stays(0), stays(0)]),
    quiet: readiness("gateway", [stays(0), stays(1)])
  },
  GatewayWorkersMissing: { fires: supervised(1), quiet: supervised(2) },
  RedisDown: { fires: dependency("redis", stays(0)), quiet: dependency("redis", stays(1)) },
  DatabaseDown: { fires: dependency("database", stays(0)), quiet: dependency("database", stays(1)) },
  GatewayLimitsUnavailable: {
    fires: { [`gateway_control_state_unavailable_total{${target}}`]: grows(1) },
    quiet: { [`gateway_control_state_unavailable_total{${target}}`]: stays(7) }
  },
  GatewayUsageWriterStopped: { fires: usageRecords(5, 0), quiet: usageRecords(5, 1) },
  GatewayUsageWriterBehind: { fires: usageRecords(60_000, 1), quiet: usageRecords(40_000, 1) },
  GatewayUpstreamUnhealthy: { fires: circuit("open"), quiet: circuit("closed") },
  GatewayGuardrailFailing: {
    fires: { [`gateway_guardrail_failures_total{${target},guardrail="words"}`]: grows(1) },
    quiet: { [`gateway_guardrail_failures_total{${target},guardrail="words"}`]: stays(3) }
  },
  EventLoopBlocked: {
    fires: { [`nodejs_eventloop_lag_p99_seconds{${target}}`]: stays(0.6) },
    quiet: { [`nodejs_eventloop_lag_p99_seconds{${target}}`]: spike(0.1, 5) }
  },
  MessagingNotReady: {
    fires: readiness("messaging", [stays(0), stays(0)]),
    quiet: readiness("messaging", [stays(1), stays(0)])
  },
  BrokerDisconnected: {
    fires: { [`svc_broker_connected{${target}}`]: stays(0), [`svc_broker_connected{${other}}`]: stays(1) },
    quiet: { [`svc_broker_connected{${target}}`]: stays(1), [`svc_broker_connected{${other}}`]: stays(1) }
  },
  BrokerReconnecting: {
    fires: { [`svc_broker_reconnects_total{${target}}`]: grows(1) },
    quiet: { [`svc_broker_reconnects_total{${target}}`]: spike(0, 3) }
  },
  ConsumerStopped: {
    fires: { [`svc_queue_consumers{${target},queue="mail"}`]: stays(0) },
    quiet: {
      [`svc_queue_consumers{${target},queue="mail"}`]: spike(1, 0),
      [`svc_queue_consumers{${target},queue="mail.dlq"}`]: stays(0)
    }
  },
  QueueGrowing: {
    fires: { [`svc_queue_messages{${target},queue="mail"}`]: "1000+10x60" },
    quiet: {
      [`svc_queue_messages{${target},queue="mail"}`]: "5000-10x60",
      [`svc_queue_messages{${target},queue="mail.dlq"}`]: "1000+10x60"
    }
  },
  DeadLettersGrowing: {
    fires: {
      [`svc_messaging_observations_total{${target},event="ConsumerDeadLetterPublished",queue="mail"}`]: grows(1)
    },
    quiet: {
      [`svc_messaging_observations_total{${target},event="ConsumerDeadLetterPublished",queue="mail"}`]: grows(0.2),
      [`svc_messaging_observations_total{${target},event="ConsumerRetryScheduled",queue="mail"}`]: grows(9)
    }
  },
  HandlersFailing: { fires: handled(6), quiet: handled(4) },
  PublishesUnconfirmed: {
    fires: { [`svc_messaging_publishes_total{${target},purpose="tasks",outcome="refused"}`]: grows(1) },
    quiet: {
      [`svc_messaging_publishes_total{${target},purpose="tasks",outcome="refused"}`]: stays(2),
      [`svc_messaging_publishes_total{${target},purpose="tasks",outcome="confirmed"}`]: grows(9)
    }
  },
  StatusHubLagging: { fires: lag(10), quiet: lag(4) },
  StatusStoreFailing: {
    fires: { [`svc_status_hub_store_failures_total{${target}}`]: grows(1) },
    quiet: { [`svc_status_hub_store_failures_total{${target}}`]: stays(0) }
  }
}

/** For `promtool`: the series of some alerts, each in a job of its own, and how many alerts of each name then fire. */
const unitTest = (firing: number, seriesByAlert: Readonly<Record<string, Series>>) => ({
  interval: "1m",
  input_series: Object.entries(seriesByAlert).flatMap(([alert, all]) =>
    Object.entries(all).map(([series, values]) => ({ series: series.replace('job="svc"', `job="${alert}"`), values }))
  ),
  promql_expr_test: Object.keys(seriesByAlert).map((alert) => ({
    expr: `count(ALERTS{alertname="${alert}",alertstate="firing"})`,
    eval_time: "45m",
    exp_samples: firing === 0 ? [] : [{ labels: "{}", value: firing }]
  }))
})

const promtool = (...tests: ReadonlyArray<ReturnType<typeof unitTest>>) =>
  Rules.check(["test", "rules", "tests.yaml"], {
    "tests.yaml": { rule_files: Rules.files.map((file) => join(root, file)), evaluation_interval: "1m", tests }
  })

describe("each alert", () => {
  it.each(Rules.alerts.map((alert) => [alert.alert, alert] as const))("%s has what operators need", (_, alert) => {
    assert.deepStrictEqual(Rules.missingIn(alert), [])
  })

  it("has an example", () => {
    assert.sameMembers(
      Rules.alerts.map(({ alert }) => alert),
      Object.keys(examples)
    )
  })

  it("without a duration, a severity, a text or a runbook is found", () => {
    const [alert] = Rules.alerts
    if (alert === undefined) throw new Error("there is no alert")
    const { for: _, ...lasting } = alert
    assert.deepStrictEqual(Rules.missingIn(lasting), ["for"])
    assert.deepStrictEqual(Rules.missingIn({ ...alert, labels: { severity: "page" } }), ["severity"])
    assert.deepStrictEqual(Rules.missingIn({ ...alert, annotations: { ...alert.annotations, summary: "" } }), [
      "summary"
    ])
    const elsewhere = { ...alert.annotations, runbook: "layers/telemetry/README.md#nowhere" }
    assert.deepStrictEqual(Rules.missingIn({ ...alert, annotations: elsewhere }), ["runbook"])
    assert.deepStrictEqual(Rules.missingIn({ ...alert, annotations: {} }), ["summary", "description", "runbook"])
  })
})

describe.skipIf(!Rules.available)("promtool", () => {
  it("accepts the rules, and no broken ones", () => {
    const { isOk, output } = Rules.check(["check", "rules", ...Rules.files.map((file) => join(root, file))])
    assert.isTrue(isOk, output)
    const broken = { groups: [{ name: "broken", rules: [{ alert: "Broken", expr: "up ==" }] }] }
    assert.isFalse(Rules.check(["check", "rules", "broken.yaml"], { "broken.yaml": broken }).isOk)
  })

  // one run for all examples, because promtool takes longer to start than to test
  const unlike = (() => {
    let output: string | undefined
    const all = (which: keyof Example) =>
      Object.fromEntries(Object.entries(examples).map(([alert, example]) => [alert, example[which]]))
    return () => {
      output ??= promtool(unitTest(1, all("fires")), unitTest(0, all("quiet"))).output.replaceAll("\\", "")
      return output
    }
  })()

  it.each(Object.keys(examples))("sees %s fire when it should, and not when it should not", (alert) => {
    assert.include(unlike(), "Unit Testing:")
    assert.notInclude(unlike(), `alertname="${alert}"`)
  })

  it("sees an alert that does not fire where one is expected", () => {
    const { isOk, output } = promtool(unitTest(1, { RedisDown: examples["RedisDown"]?.quiet ?? {} }))
    assert.isFalse(isOk)
    assert.include(output.replaceAll("\\", ""), 'alertname="RedisDown"')
  })

  it("sees that no gateway is ready where no worker responds, but where one does", () => {
    assert.isTrue(promtool(unitTest(1, { GatewayNotReady: supervised(0) })).isOk)
    assert.isTrue(promtool(unitTest(0, { GatewayNotReady: supervised(1) })).isOk)
  })

  it("sees that nothing is ready where nothing is left to scrape", () => {
    const { isOk, output } = promtool(unitTest(1, { GatewayNotReady: {}, MessagingNotReady: {} }))
    assert.isTrue(isOk, output)
  })
})
