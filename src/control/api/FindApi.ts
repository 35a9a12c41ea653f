import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { refusals } from "./schema/Errors.ts"
import { Timestamp } from "./schema/Fields.ts"
import { operation } from "./schema/Security.ts"

/** The kinds of things that have an id. A task's runs and model calls are found through the task. */
export const FindableKind = Schema.Literals([
  "request",
  "key",
  "project",
  "session",
  "audit_event",
  "task",
  "dead_letter",
  "replay",
  "cancellation"
])
export type FindableKind = typeof FindableKind.Type

export const Found = Schema.Struct({
  kind: FindableKind,
  /** The value that the endpoint of `path` takes. */
  id: Schema.String,
  title: Schema.String,
  /** When it happened or was made. `null` if its store does not say. */
  at: Schema.NullOr(Timestamp),
  /** A path of this listener that shows it. */
  path: Schema.String
})
export type Found = typeof Found.Type

/**
 * Says whether the things of a kind were searched. `since`: older ones are not kept. `not_allowed`: the token lacks the scopes
 * that `detail` names. `not_here`: this process does not have them. `failed`: their store did not respond.
 */
export const Searched = Schema.Struct({
  kind: FindableKind,
  state: Schema.Literals(["searched", "not_allowed", "not_here", "failed"]),
  since: Schema.NullOr(Timestamp),
  detail: Schema.NullOr(Schema.String)
})
export type Searched = typeof Searched.Type

export const FindResult = Schema.Struct({ found: Schema.Array(Found), searched: Schema.Array(Searched) })
export type FindResult = typeof FindResult.Type

export const FindApi = HttpApiGroup.make("find")
  .annotate(OpenApi.Description, "Finds whatever has an id.")
  .add(
    HttpApiEndpoint.get("find", "/find", {
      // PostgreSQL stores no NUL.
      query: { q: Schema.String.check(Schema.isBetweenLength(1, 256), Schema.isPattern(/^[^\0]*$/)) },
      success: FindResult,
      error: refusals("invalid_request")
    }).annotateMerge(
      operation(
        "Find what has an id, whatever kind it is",
        "usage:read",
        "operators:manage",
        "audit:read",
        "tasks:read",
        "tasks:operate"
      )
    )
  )
