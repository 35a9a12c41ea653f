import { Effect, Option, Scope } from "effect"
import { HttpServerRequest, type HttpServerResponse } from "effect/http"
import * as ConcurrencyLimit from "../../services/ConcurrencyLimit.ts"
import * as FairShare from "../../services/FairShare.ts"
import { refusal, unavailable } from "./ErrorBody.ts"

const maxConcurrentResponses = 4
/** One response of an address may be produced while another one is being sent. */
const maxProducedPerAddress = 2
const waitTimeoutSeconds = 10

/** Smaller responses do not count while they are being sent. */
const smallResponseBytes = 256 * 1024

/** Limits the large responses that are produced and sent at once. One counts until the client has received it. */
export type ResponseLimiter = <E, R>(
  answer: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
) => Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  E | ConcurrencyLimit.ConcurrencyLimitReached,
  R | HttpServerRequest.HttpServerRequest | Scope.Scope
>

export const make: Effect.Effect<ResponseLimiter, never, Scope.Scope> = Effect.gen(function* () {
  const waits = `${waitTimeoutSeconds} seconds` as const
  const producing = yield* ConcurrencyLimit.make({
    maxTotal: maxConcurrentResponses,
    maxPerCaller: maxProducedPerAddress,
    maxWait: waits
  })
  const sending = yield* ConcurrencyLimit.make({
    maxTotal: maxConcurrentResponses,
    maxPerCaller: FairShare.maximum(maxConcurrentResponses),
    maxWait: waits
  })
  const limitResponse: ResponseLimiter = (answer) =>
    Effect.gen(function* () {
      const { remoteAddress } = yield* HttpServerRequest.HttpServerRequest
      const caller = FairShare.callerOfAddress(Option.getOrElse(remoteAddress, () => ""))
      const request = yield* Scope.Scope
      return yield* Effect.scoped(
        Effect.gen(function* () {
          yield* producing.acquire(caller)
          const response = yield* Effect.provideService(answer, Scope.Scope, request)
          if (sizeOf(response) > smallResponseBytes) yield* Scope.provide(sending.acquire(caller), request)
          return response
        })
      )
    })
  return limitResponse
})

const sizeOf = ({ body }: HttpServerResponse.HttpServerResponse): number =>
  ("contentLength" in body ? body.contentLength : 0) ?? Number.POSITIVE_INFINITY

export const refusalOf = ({
  whose
}: ConcurrencyLimit.ConcurrencyLimitReached): HttpServerResponse.HttpServerResponse =>
  whose === "caller"
    ? refusal(
        429,
        `This address already receives as many large responses as it may have at once, and none ended within ${waitTimeoutSeconds} seconds: try again in a moment.`,
        { "retry-after": "1" }
      )
    : unavailable(
        `${maxConcurrentResponses} large responses are being produced or sent, which is the limit, and none ended within ${waitTimeoutSeconds} seconds: try again in a moment.`
      )
