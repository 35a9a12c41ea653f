import { DateTime, Effect, Option, Schema } from "effect"
import { HttpServerRequest } from "effect/http"
import { Database } from "../../services/Database.ts"
import { Timestamp } from "../api/schema/Fields.ts"
import { Operator } from "../api/schema/Security.ts"
import { Audit, Snapshots } from "../audit/Audit.ts"
import { callerOf } from "../operators/Authentication.ts"
import { insertSession } from "../session/Sessions.ts"
import { computedRows } from "../store/Rows.ts"

/**
 * Begins a session of the token with all scopes that lasts longest, the oldest of these first. Whoever can start the
 * program can also make such a token with `operator-token create`. Returns `none` if no such token is active.
 */
export const begin = Effect.gen(function* () {
  const audit = yield* Audit
  const { sql } = yield* Database
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const token = yield* tokenRows.first(sql`SELECT id, encode(token_hash, 'hex') AS secret_hash FROM operator_tokens
    WHERE NOT disabled AND revoked_at IS NULL AND coalesce(expires_at > now(), true) AND identity_hash IS NULL
      AND '*' = ANY(scopes)
    ORDER BY expires_at DESC NULLS FIRST, created_at LIMIT 1`)
  if (token === undefined) return Option.none()
  const session = audit.mutate(function* () {
    const { id, value } = yield* insertSession({
      tokenId: token.id,
      keyId: null,
      secretHash: Buffer.from(token.secret_hash, "hex"),
      endsAt: null
    })
    return {
      result: value,
      auditAction: { target: "session", action: "sessions:sign_in" },
      targetId: id,
      snapshots: yield* snapshots(null, { of: "StartLink", id: token.id, created_at: yield* DateTime.now }),
      changes: []
    }
  })
  return Option.some(
    yield* Effect.provideService(session, Operator, { tokenId: token.id, scopes: ["*"], ...callerOf(headers) })
  )
}).pipe(Effect.withSpan("StartLinkSession.begin"))

const tokenRows = computedRows(Schema.Struct({ id: Schema.String, secret_hash: Schema.String }))
const snapshots = Snapshots.of(Schema.Struct({ of: Schema.String, id: Schema.String, created_at: Timestamp }))
