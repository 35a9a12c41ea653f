import type { RequestParameters } from "../../policy/facts/RequestParameters.ts"
import type { Family } from "../../policy/routes/CanonicalRoute.ts"
import type { UpstreamBase } from "../../policy/routes/UpstreamBase.ts"
import type { GenAiVersion } from "../../process/SemanticConventions.ts"
import type { GatewayError } from "../GatewayError.ts"
import type { ObservedUsage } from "../usage/UsageTap.ts"
import { attributesOf, type ModelCallFacts, type Operation, providerOf } from "./GenAiAttributes.ts"
import type { GenAiMetrics } from "./GenAiMetrics.ts"
import { ModelResponse } from "./ModelResponse.ts"

/** What a request asks of a model. */
export interface ModelRequest {
  readonly operation: Operation
  readonly family: Family
  /** The first model that the request names, truncated and without control characters. */
  readonly model: string | undefined
  readonly streams: boolean
  /** `undefined` if the body was not read for them. */
  readonly parameters: RequestParameters | undefined
}

/** How an exchange with an upstream ended. */
export interface CallResult {
  readonly status: number | undefined
  readonly withheldStatus?: number | undefined
  readonly error: GatewayError | undefined
  readonly clientDisconnected: boolean
  readonly observedUsage: ObservedUsage
}

export interface ModelCallServices {
  readonly version: GenAiVersion
  readonly metrics: GenAiMetrics
  readonly now: () => number
}

interface ModelCallOptions extends ModelCallServices {
  readonly isRecorded: boolean
}

/** One call of a model, as the conventions for GenAI see it. */
export class ModelCall {
  readonly response: ModelResponse
  readonly #options: ModelCallOptions
  readonly #parameters: RequestParameters | undefined
  readonly #streams: boolean
  readonly #labels: Pick<ModelCallFacts, "operation" | "provider" | "requestModel" | "serverAddress" | "serverPort">
  readonly #startedAt: number
  #endedAt: number | undefined

  constructor(
    { family, model, operation, parameters, streams }: ModelRequest,
    base: UpstreamBase,
    options: ModelCallOptions
  ) {
    const { isRecorded, metrics, now, version } = options
    const { address, port } = serverOf(base)
    this.#options = options
    this.#parameters = parameters
    this.#streams = streams
    this.#labels = {
      operation,
      provider: providerOf(version, address, family),
      requestModel: model,
      serverAddress: address,
      serverPort: port
    }
    this.#startedAt = now()
    this.response = new ModelResponse({ isRecorded, now, onGap: metrics.chunkTimer(this.#labels) })
  }

  get spanName(): string {
    const { operation, requestModel } = this.#labels
    return requestModel === undefined ? operation : `${operation} ${requestModel}`
  }

  received(): void {
    this.#endedAt ??= this.#options.now()
  }

  end(result: CallResult): void {
    const { metrics, now } = this.#options
    const { status, withheldStatus = status } = result
    metrics.end(this.#labels, {
      status: withheldStatus,
      seconds: ((this.#endedAt ?? now()) - this.#startedAt) / 1_000,
      errorType: errorTypeOf(result),
      usage: result.observedUsage.reported?.usage,
      secondsToFirstChunk: this.#secondsToFirstChunk
    })
  }

  attributes({ observedUsage }: CallResult): ReturnType<typeof attributesOf> {
    const { cachedInput, cacheWrite, input, output, reasoning } = observedUsage.reported?.usage ?? {}
    return attributesOf(this.#options.version, {
      ...this.#parameters,
      ...this.#labels,
      ...this.response.facts,
      ...(this.#streams && { streams: true }),
      secondsToFirstChunk: this.#secondsToFirstChunk,
      inputTokens: input,
      outputTokens: output,
      cacheReadTokens: cachedInput,
      cacheWriteTokens: cacheWrite,
      reasoningTokens: reasoning
    })
  }

  get #secondsToFirstChunk(): number | undefined {
    const { firstChunkAt } = this.response
    return firstChunkAt === undefined ? undefined : (firstChunkAt - this.#startedAt) / 1_000
  }
}

/** A guardrail that refuses a response is no error of the exchange. */
export const errorTypeOf = ({
  clientDisconnected,
  error,
  status,
  withheldStatus = status
}: CallResult): string | undefined => {
  if (withheldStatus !== undefined && withheldStatus >= 400) return String(withheldStatus)
  if (clientDisconnected) return "client_disconnected"
  return error?.code.startsWith("guardrail_") ? undefined : error?.code
}

interface Server {
  readonly address: string
  readonly port: number
}

/** A URL takes longer to parse than all else that a span needs. */
const servers = new WeakMap<UpstreamBase, Server>()

export const serverOf = (base: UpstreamBase): Server => {
  const known = servers.get(base)
  if (known !== undefined) return known
  const { hostname, port, protocol } = new URL(base.origin)
  const server = { address: hostname, port: Number(port) || (protocol === "https:" ? 443 : 80) }
  servers.set(base, server)
  return server
}
