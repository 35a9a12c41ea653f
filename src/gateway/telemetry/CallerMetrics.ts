import { Metric, Option } from "effect"
import { toDollars } from "../../policy/Price.ts"
import { type CallbackMetrics, maxCallerSeries, otherLabel } from "../../process/CallbackMetrics.ts"
import type { KeyRecord } from "../snapshot/KeyRecord.ts"
import type { TokenUsage } from "../usage/TokenUsage.ts"
import { ModelLabels } from "./ModelLabels.ts"
import type { RequestOutcome } from "./RequestOutcome.ts"

const counter = (name: string, description: string) => Metric.counter(name, { description, incremental: true })
const requests = counter(
  "gateway_usage_requests_total",
  "Requests with a known gateway key, by model, provider, project, key and status class"
)
const tokens = counter(
  "gateway_usage_tokens_total",
  "Tokens by kind, model, provider, project and key. cached_input and cache_write are parts of input; reasoning is part of output"
)
const cost = counter("gateway_usage_cost_usd_total", "Cost in US dollars by model, provider, project and key")

interface Labels extends Metric.Metric.AttributeSet {
  readonly model: string
  readonly provider: string
  readonly project: string
  readonly key_prefix: string
}

const tokenKinds: ReadonlyArray<readonly [kind: string, of: keyof TokenUsage]> = [
  ["input", "input"],
  ["output", "output"],
  ["cached_input", "cachedInput"],
  ["cache_write", "cacheWrite"],
  ["reasoning", "reasoning"]
]

/** The counters of one caller and model. Each time series is registered when its value first becomes non-zero. */
class CallerCounters {
  readonly provider: string
  readonly #series: CallbackMetrics
  readonly #labels: Labels
  readonly #requests = [0, 0, 0, 0, 0, 0]
  readonly #tokens = tokenKinds.map(() => 0)
  #nanos = 0

  constructor(series: CallbackMetrics, labels: Labels) {
    this.provider = labels.provider
    this.#series = series
    this.#labels = labels
  }

  add({ bill, status }: RequestOutcome): void {
    const statusClass = Math.floor(status / 100)
    if (this.#requests[statusClass]! === 0) {
      this.#series.counter(
        Metric.withAttributes(requests, { ...this.#labels, status_class: `${statusClass}xx` }),
        () => this.#requests[statusClass]!
      )
    }
    this.#requests[statusClass]!++
    const { usage } = bill
    for (let index = 0; index < tokenKinds.length; index++) {
      const [kind, of] = tokenKinds[index]!
      const count = usage[of]
      if (count === undefined || count === 0) continue
      if (this.#tokens[index] === 0) {
        this.#series.counter(Metric.withAttributes(tokens, { ...this.#labels, kind }), () => this.#tokens[index]!)
      }
      this.#tokens[index]! += count
    }
    const nanos = bill.costNanos ?? 0
    if (nanos === 0) return
    if (this.#nanos === 0) {
      this.#series.counter(Metric.withAttributes(cost, this.#labels), () => toDollars(this.#nanos))
    }
    this.#nanos += nanos
  }
}

/** Counts requests, tokens and cost per caller and model. Callers and models beyond a maximum count as `other`. */
export const make = (series: CallbackMetrics) => {
  const models = new ModelLabels()
  const counters = new Map<string, CallerCounters>()
  const countersByKey = new WeakMap<KeyRecord, Map<string, CallerCounters>>()

  const callerOf = (key: KeyRecord, model: string, provider: string): CallerCounters => {
    const project = Option.getOrElse(key.projectName, () => "none")
    const labels = { model, provider, project, key_prefix: key.prefix }
    return (
      counters.get(callerName(labels)) ??
      created(counters.size < maxCallerSeries ? labels : { ...otherLabels, provider })
    )
  }
  const created = (labels: Labels): CallerCounters => {
    const name = callerName(labels)
    const known = counters.get(name)
    if (known !== undefined) return known
    const callerCounters = new CallerCounters(series, labels)
    counters.set(name, callerCounters)
    return callerCounters
  }

  return (key: KeyRecord, provider: string, outcome: RequestOutcome): void => {
    const model = models.of(outcome.model, outcome.status)
    let countersByModel = countersByKey.get(key)
    if (countersByModel === undefined) {
      countersByModel = new Map()
      countersByKey.set(key, countersByModel)
    }
    let callerCounters = countersByModel.get(model)
    if (callerCounters?.provider !== provider) {
      callerCounters = callerOf(key, model, provider)
      countersByModel.set(model, callerCounters)
    }
    callerCounters.add(outcome)
  }
}

const otherLabels = { model: otherLabel, project: otherLabel, key_prefix: otherLabel }

const callerName = ({ key_prefix, model, project, provider }: Labels): string =>
  JSON.stringify([key_prefix, model, project, provider])
