import { Effect, Option, type Scope } from "effect"
import { HttpServerRequest, type HttpServerResponse } from "effect/http"
import * as Places from "../services/Places.ts"
import * as Share from "../services/Share.ts"
import { refusal, unavailable } from "./Detail.ts"

/** Each may have tens of MiB, and a process serves others beside those who ask for it. */
const answersAtOnce = 4
const waitsSeconds = 10

/** A place for an answer that may be large, from what is read for it until its client has it. */
export type Place = Effect.Effect<void, Places.NoPlace, HttpServerRequest.HttpServerRequest | Scope.Scope>

/** The places of one router. */
export const make: Effect.Effect<Place, never, Scope.Scope> = Effect.map(
  Places.make({ most: answersAtOnce, each: Share.of(answersAtOnce), waits: `${waitsSeconds} seconds` }),
  ({ take }) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ remoteAddress }) =>
      take(Share.callerAt(Option.getOrElse(remoteAddress, () => "")))
    )
)

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
