import { Effect, Option, Scope } from "effect"
import { HttpServerRequest, type HttpServerResponse } from "effect/http"
import * as ConcurrencyLimit from "../../services/ConcurrencyLimit.ts"
import * as FairShare from "../../services/FairShare.ts"
import { refusal, unavailable } from "./ErrorBody.ts"

const maxConcurrentResponses = 4
/** With two, an address can have one response in production while another one waits to be sent. */
const maxProducedPerAddress = 2
const waitTimeoutSeconds = 10

/** Only larger responses count towards the limit while the server sends them. */
const smallResponseBytes = 256 * 1024

/** Limits the number of large responses in progress. A large response counts until the client has received it. */
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
        `This address has reached its limit of large responses at the same time. None of them ended within ${waitTimeoutSeconds} seconds. Try again in a moment.`,
        { "retry-after": "1" }
      )
    : unavailable(
        `The service is sending ${maxConcurrentResponses} large responses, which is its limit. None of them ended within ${waitTimeoutSeconds} seconds. Try again in a moment.`
      )
