import { Metric, Option } from "effect"
import { toDollars } from "../../policy/Price.ts"
import { mostCallers, mostModels, other, type Series } from "../../process/Series.ts"
import type { KeyRecord } from "../snapshot/KeyRecord.ts"
import type { TokenUsage } from "../usage/TokenUsage.ts"
import type { Ended } from "./Ended.ts"

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

const kinds: ReadonlyArray<readonly [kind: string, of: keyof TokenUsage]> = [
  ["input", "input"],
  ["output", "output"],
  ["cached_input", "cachedInput"],
  ["cache_write", "cacheWrite"],
  ["reasoning", "reasoning"]
]

/** The requests of one caller for one model. A series begins with what it first counts. */
class Caller {
  readonly provider: string
  readonly #series: Series
  readonly #labels: Labels
  readonly #requests = [0, 0, 0, 0, 0, 0]
  readonly #tokens = kinds.map(() => 0)
  #nanos = 0

  constructor(series: Series, labels: Labels) {
    this.provider = labels.provider
    this.#series = series
    this.#labels = labels
  }

  add({ bill, status }: Ended): void {
    const statusClass = Math.floor(status / 100)
    if (this.#requests[statusClass]! === 0) {
      this.#series.counter(
        Metric.withAttributes(requests, { ...this.#labels, status_class: `${statusClass}xx` }),
        () => this.#requests[statusClass]!
      )
    }
    this.#requests[statusClass]!++
    const { usage } = bill
    for (let place = 0; place < kinds.length; place++) {
      const [kind, of] = kinds[place]!
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
export const make = (series: Series) => {
  const models = new Set<string>()
  const callers = new Map<string, Caller>()
  /** A key's record leads to its callers, by model: making labels anew costs more than counting. */
  const ofKeys = new WeakMap<KeyRecord, Map<string, Caller>>()

  const callerOf = (key: KeyRecord, model: string, provider: string): Caller => {
    const project = Option.getOrElse(key.projectName, () => "none")
    const labels = { model, provider, project, key_prefix: key.prefix }
    return callers.get(nameOf(labels)) ?? made(callers.size < mostCallers ? labels : { ...others, provider })
  }
  const made = (labels: Labels): Caller => {
    const name = nameOf(labels)
    const known = callers.get(name)
    if (known !== undefined) return known
    const caller = new Caller(series, labels)
    callers.set(name, caller)
    return caller
  }

  /** The name of a model, once an upstream has answered for it: anybody can ask for any. */
  const labelOf = (model: string, status: number): string => {
    if (models.has(model)) return model
    if (status >= 400 || models.size >= mostModels) return other
    models.add(model)
    return model
  }

  return (key: KeyRecord, provider: string, ended: Ended): void => {
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

const others = { model: other, project: other, key_prefix: other }

const nameOf = ({ key_prefix, model, project, provider }: Labels): string =>
  JSON.stringify([key_prefix, model, project, provider])
