import { Effect } from "effect"
import { HttpServerRequest } from "effect/http"
import { Operator } from "../api/schema/Security.ts"
import { callerOf } from "../operators/Authentication.ts"

/** The audit log names operators by their tokens. The action says that the holder acted. */
export const asHolder = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) =>
    Effect.provideService(work, Operator, { tokenId: null, scopes: [], ...callerOf(headers) })
  )
