import { Effect, Option } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import { AppliedEpoch } from "../../process/AppliedEpoch.ts"
import { Database } from "../../services/Database.ts"
import { readEpoch } from "../../state/Changes.ts"

/** If this process also runs a gateway, the response to a change waits until that gateway applies the change. */
export const ReadYourWrites = HttpRouter.middleware(
  Effect.gen(function* () {
    const followed = yield* Effect.serviceOption(AppliedEpoch)
    const database = yield* Database
    if (Option.isNone(followed)) return (httpEffect) => httpEffect
    const { waitFor } = followed.value
    // A failure to wait is ignored, because the change is already committed.
    const waitForEpoch = readEpoch.pipe(
      Effect.provideService(Database, database),
      Effect.flatMap(waitFor),
      Effect.ignore
    )
    return (httpEffect) =>
      Effect.tap(httpEffect, ({ status }) =>
        Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ method }) =>
          safeMethods.has(method) || status >= 400 ? Effect.void : waitForEpoch
        )
      )
  }),
  { global: true }
)

const safeMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"])
