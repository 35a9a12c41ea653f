import { Metric } from "effect"
import { type CallbackMetrics, HistogramValues } from "../../process/CallbackMetrics.ts"
import type { GenAiVersion } from "../../process/SemanticConventions.ts"
import type { TokenUsage } from "../usage/TokenUsage.ts"
import { attributesOf, type ModelCallFacts } from "./GenAiAttributes.ts"
import { ModelLabels } from "./ModelLabels.ts"

/** The bucket boundaries that the conventions prescribe. */
const tokenBoundaries = Array.from({ length: 14 }, (_, power) => 4 ** power)
const secondBoundaries = Array.from({ length: 14 }, (_, power) => 2 ** power / 100)

const histogram = (name: string, description: string, unit: string, boundaries: ReadonlyArray<number>) =>
  Metric.histogram(name, { description, boundaries, attributes: { unit } })

const tokenUsage = histogram(
  "gen_ai.client.token.usage",
  "Tokens of calls of models, as the upstream reported them",
  "{token}",
  tokenBoundaries
)
const duration = histogram(
  "gen_ai.client.operation.duration",
  "From a request to a model to the end of its response",
  "s",
  secondBoundaries
)
const timeToFirstChunk = histogram(
  "gen_ai.client.operation.time_to_first_chunk",
  "From a request to a model to the first event of its stream",
  "s",
  secondBoundaries
)
const timePerOutputChunk = histogram(
  "gen_ai.client.operation.time_per_output_chunk",
  "Between two events of a model's stream",
  "s",
  secondBoundaries
)

type CallLabels = Pick<ModelCallFacts, "operation" | "provider" | "requestModel" | "serverAddress" | "serverPort">

interface EndedCall {
  readonly status: number | undefined
  readonly seconds: number
  readonly errorType: string | undefined
  readonly usage: TokenUsage | undefined
  /** `undefined` if the response was no stream. */
  readonly secondsToFirstChunk: number | undefined
}

/** The metrics of calls of models by the conventions. Their labels are bounded like those of `CallerMetrics`. */
export class GenAiMetrics {
  readonly #series: CallbackMetrics
  readonly #version: GenAiVersion
  readonly #models = new ModelLabels()
  readonly #histograms = new Map<string, HistogramValues>()

  constructor(series: CallbackMetrics, version: GenAiVersion) {
    this.#series = series
    this.#version = version
  }

  /** Returns the function that records the time between two chunks. `undefined` if the version has no such metric. */
  chunkTimer(call: CallLabels): ((ms: number) => void) | undefined {
    if (this.#version === "v1.36.0") return undefined
    let values: HistogramValues | undefined
    return (ms) => {
      // Only a successful response streams events.
      values ??= this.#valuesOf(timePerOutputChunk, secondBoundaries, this.#labelsOf(call, 200))
      values.add(ms / 1_000)
    }
  }

  end(call: CallLabels, { errorType, seconds, secondsToFirstChunk, status, usage }: EndedCall): void {
    const labels = this.#labelsOf(call, status ?? 502)
    this.#valuesOf(duration, secondBoundaries, { ...labels, errorType }).add(seconds)
    if (usage?.input !== undefined) {
      this.#valuesOf(tokenUsage, tokenBoundaries, { ...labels, tokenType: "input" }).add(usage.input)
    }
    if (usage?.output !== undefined) {
      this.#valuesOf(tokenUsage, tokenBoundaries, { ...labels, tokenType: "output" }).add(usage.output)
    }
    if (secondsToFirstChunk !== undefined && this.#version !== "v1.36.0") {
      this.#valuesOf(timeToFirstChunk, secondBoundaries, labels).add(secondsToFirstChunk)
    }
  }

  #labelsOf(call: CallLabels, status: number): CallLabels {
    const { requestModel } = call
    return requestModel === undefined ? call : { ...call, requestModel: this.#models.of(requestModel, status) }
  }

  #valuesOf(
    metric: typeof duration,
    boundaries: ReadonlyArray<number>,
    labels: CallLabels & Pick<ModelCallFacts, "errorType" | "tokenType">
  ): HistogramValues {
    const { errorType, operation, provider, requestModel, serverAddress, serverPort, tokenType } = labels
    const name = `${metric.id} ${operation} ${provider} ${serverAddress} ${serverPort} ${tokenType} ${errorType} ${requestModel}`
    const known = this.#histograms.get(name)
    if (known !== undefined) return known
    const values = new HistogramValues(boundaries)
    this.#histograms.set(name, values)
    const attributes = attributesOf(this.#version, labels).map(([name, value]) => [name, String(value)])
    this.#series.histogram(Metric.withAttributes(metric, Object.fromEntries(attributes)), values, 1)
    return values
  }
}
