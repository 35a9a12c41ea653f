import { Metric, Option } from "effect"
import { toDollars } from "../../policy/Price.ts"
import { type CallbackMetrics, maxCallerSeries, maxModelLabels, otherLabel } from "../../process/CallbackMetrics.ts"
import type { KeyRecord } from "../snapshot/KeyRecord.ts"
import type { TokenUsage } from "../usage/TokenUsage.ts"
import type { RequestOutcome } from "./RequestOutcome.ts"

const counter = (name: string, description: string) => Metric.counter(name, { description, incremental: true })
const requests = counter(
  "gateway_usage_requests_total",
  "Requests that came with a known gateway key, by model, provider, project, key and status class"
)
const tokens = counter(
  "gateway_usage_tokens_total",
  "Tokens by kind, model, provider, project and key. cached_input and cache_write are parts of input, reasoning is one of output"
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

/** The requests of one caller for one model. A series begins with what it first counts. */
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
    for (let place = 0; place < tokenKinds.length; place++) {
      const [kind, of] = tokenKinds[place]!
      const count = usage[of]
      if (count === undefined || count === 0) continue
      if (this.#tokens[place] === 0) {
        this.#series.counter(Metric.withAttributes(tokens, { ...this.#labels, kind }), () => this.#tokens[place]!)
      }
      this.#tokens[place]! += count
    }
    const nanos = bill.costNanos ?? 0
    if (nanos === 0) return
    if (this.#nanos === 0) {
      this.#series.counter(Metric.withAttributes(cost, this.#labels), () => toDollars(this.#nanos))
    }
    this.#nanos += nanos
  }
}

/** Counts requests, tokens and cost by their callers. The numbers of callers and models are bounded. */
export const make = (series: CallbackMetrics) => {
  const models = new Set<string>()
  const callers = new Map<string, CallerCounters>()
  /** A key's record leads to its callers, by model: making labels anew costs more than counting. */
  const ofKeys = new WeakMap<KeyRecord, Map<string, CallerCounters>>()

  const callerOf = (key: KeyRecord, model: string, provider: string): CallerCounters => {
    const project = Option.getOrElse(key.projectName, () => "none")
    const labels = { model, provider, project, key_prefix: key.prefix }
    return callers.get(callerName(labels)) ?? made(callers.size < maxCallerSeries ? labels : { ...others, provider })
  }
  const made = (labels: Labels): CallerCounters => {
    const name = callerName(labels)
    const known = callers.get(name)
    if (known !== undefined) return known
    const caller = new CallerCounters(series, labels)
    callers.set(name, caller)
    return caller
  }

  /** The name of a model, once an upstream has answered for it: anybody can ask for any. */
  const labelOf = (model: string, status: number): string => {
    if (models.has(model)) return model
    if (status >= 400 || models.size >= maxModelLabels) return otherLabel
    models.add(model)
    return model
  }

  return (key: KeyRecord, provider: string, ended: RequestOutcome): void => {
    const model = ended.model === undefined ? "none" : labelOf(ended.model, ended.status)
    let ofModels = ofKeys.get(key)
    if (ofModels === undefined) {
      ofModels = new Map()
      ofKeys.set(key, ofModels)
    }
    let caller = ofModels.get(model)
    if (caller?.provider !== provider) {
      caller = callerOf(key, model, provider)
      ofModels.set(model, caller)
    }
    caller.add(ended)
  }
}

const others = { model: otherLabel, project: otherLabel, key_prefix: otherLabel }

const callerName = ({ key_prefix, model, project, provider }: Labels): string =>
  JSON.stringify([key_prefix, model, project, provider])
