import { Effect, Option, Scope } from "effect"
import { HttpServerRequest, type HttpServerResponse } from "effect/http"
import * as Places from "../../services/Places.ts"
import * as Share from "../../services/Share.ts"
import { refusal, unavailable } from "./Detail.ts"

/** Each may have tens of MiB, and a process serves others beside those who ask for it. */
const answersAtOnce = 4
/** An address may have one answer made while another one waits for its client. */
const madeForAddress = 2
const waitsSeconds = 10

/** A client that is slow to take no more than this keeps nobody from anything. */
const smallAnswer = 256 * 1024

/** Runs what makes an answer that may be large, where there is a place for it. A large one has one until its client has it. */
export type Holding = <E, R>(
  answer: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>
) => Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  E | Places.NoPlace,
  R | HttpServerRequest.HttpServerRequest | Scope.Scope
>

/** The places of one router. */
export const make: Effect.Effect<Holding, never, Scope.Scope> = Effect.gen(function* () {
  const waits = `${waitsSeconds} seconds` as const
  const making = yield* Places.make({ most: answersAtOnce, each: madeForAddress, waits })
  const sending = yield* Places.make({ most: answersAtOnce, each: Share.of(answersAtOnce), waits })
  const holding: Holding = (answer) =>
    Effect.gen(function* () {
      const { remoteAddress } = yield* HttpServerRequest.HttpServerRequest
      const caller = Share.callerAt(Option.getOrElse(remoteAddress, () => ""))
      const request = yield* Scope.Scope
      return yield* Effect.scoped(
        Effect.gen(function* () {
          yield* making.take(caller)
          const response = yield* Effect.provideService(answer, Scope.Scope, request)
          if (sizeOf(response) > smallAnswer) yield* Scope.provide(sending.take(caller), request)
          return response
        })
      )
    })
  return holding
})

const sizeOf = ({ body }: HttpServerResponse.HttpServerResponse): number =>
  ("contentLength" in body ? body.contentLength : 0) ?? Number.POSITIVE_INFINITY

export const refused = ({ whose }: Places.NoPlace): HttpServerResponse.HttpServerResponse =>
  whose === "caller"
    ? refusal(
        429,
        `This address is being sent as many large answers as it may have at once, and none ended within ${waitsSeconds} seconds.`,
        { "retry-after": "1" }
      )
    : unavailable(
        `${answersAtOnce} large answers are under way, as many as may be, and none ended within ${waitsSeconds} seconds: try again in a moment.`
      )
