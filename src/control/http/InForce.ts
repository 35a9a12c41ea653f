import { Effect, Option } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import { Followed } from "../../process/Followed.ts"
import { Database } from "../../services/Database.ts"
import { readEpoch } from "../../state/Changes.ts"

/** Answers a change when the gateway of this process, if there is one, has it in force. */
export const InForce = HttpRouter.middleware(
  Effect.gen(function* () {
    const followed = yield* Effect.serviceOption(Followed)
    const database = yield* Database
    if (Option.isNone(followed)) return (httpEffect) => httpEffect
    const { reached } = followed.value
    // the change is made whatever becomes of this look
    const settled = readEpoch.pipe(Effect.provideService(Database, database), Effect.flatMap(reached), Effect.ignore)
    return (httpEffect) =>
      Effect.tap(httpEffect, ({ status }) =>
        Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ method }) =>
          reading.has(method) || status >= 400 ? Effect.void : settled
        )
      )
  }),
  { global: true }
)

const reading: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"])
