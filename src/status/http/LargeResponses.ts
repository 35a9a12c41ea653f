import { Effect, Option, Scope } from "effect"
import { HttpServerRequest, type HttpServerResponse } from "effect/http"
import * as ConcurrencyLimit from "../../services/ConcurrencyLimit.ts"
import * as FairShare from "../../services/FairShare.ts"
import { refusal, unavailable } from "./ErrorBody.ts"

/** Each may have tens of MiB, and a process serves others beside those who ask for it. */
const maxConcurrentResponses = 4
/** An address may have one answer made while another one waits for its client. */
const maxProducedPerAddress = 2
const waitTimeoutSeconds = 10

/** A client that is slow to take no more than this keeps nobody from anything. */
const smallResponseBytes = 256 * 1024

/** Runs what makes an answer that may be large, where there is a place for it. A large one has one until its client has it. */
export type ResponseLimiter = <E, R>(
  answer: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
) => Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  E | ConcurrencyLimit.ConcurrencyLimitReached,
  R | HttpServerRequest.HttpServerRequest | Scope.Scope
>

/** The places of one router. */
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
        `This address is being sent as many large answers as it may have at once, and none ended within ${waitTimeoutSeconds} seconds.`,
        { "retry-after": "1" }
      )
    : unavailable(
        `${maxConcurrentResponses} large answers are under way, as many as may be, and none ended within ${waitTimeoutSeconds} seconds: try again in a moment.`
      )
