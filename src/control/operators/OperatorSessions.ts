import { Context, Effect, Function, Layer, Schema } from "effect"
import { Database } from "../../services/Database.ts"
import { OperatorSession } from "../api/OperatorTokenApi.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import type { Cursor } from "../api/schema/Fields.ts"
import { Scope } from "../api/schema/Security.ts"
import { type Actor, Audit, Snapshots } from "../audit/Audit.ts"
import { keyset, type Page, readPage } from "../store/Paging.ts"
import { type StoreFailure, storedRows, toStoreFailures } from "../store/Rows.ts"
import { requireScopes } from "./OperatorTokens.ts"

/** The sessions of browsers that belong to operator tokens, and to the people of an identity provider. */
export class OperatorSessions extends Context.Service<
  OperatorSessions,
  {
    readonly list: (query: {
      readonly limit?: number
      readonly cursor?: Cursor
    }) => Effect.Effect<Page<OperatorSession>, StoreFailure>
    /** The caller needs the scopes of the session, as it does to revoke its token. */
    readonly end: (
      id: string
    ) => Effect.Effect<void, Refused<"not_found" | "insufficient_operator_scope"> | StoreFailure, Actor>
  }
>()("svc/control/OperatorSessions") {
  static readonly layer = Layer.suspend(() => Layer.effect(OperatorSessions, make))
}

const defaultLimit = 100

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const columns =
    sql.literal(`operator_sessions.id, token_id, operator_tokens.name AS token_name, operator_sessions.created_at,
    used_at, operator_sessions.expires_at`)
  const inForce = sql`operator_sessions JOIN operator_tokens ON operator_tokens.id = token_id AND token_hash = secret_hash
    WHERE operator_sessions.expires_at > now() AND NOT disabled AND revoked_at IS NULL
      AND coalesce(operator_tokens.expires_at > now(), true)`

  return OperatorSessions.of({
    list: Effect.fn("OperatorSessions.list")(function* ({ cursor, limit = defaultLimit }) {
      const at = keyset(sql, "operator_sessions", cursor)
      return yield* readPage(
        sessionRows,
        sql`SELECT ${columns}, ${at.micros} FROM ${inForce} AND ${at.afterCursor} ORDER BY ${at.order} LIMIT ${limit + 1}`,
        limit,
        Function.identity
      )
    }, toStoreFailures),
    end: Effect.fn("OperatorSessions.end")((id) =>
      audit.mutate(function* ({ write }) {
        const found = yield* ownedRows.first(
          sql`SELECT ${columns}, scopes FROM ${inForce} AND operator_sessions.id = ${id} FOR UPDATE OF operator_sessions`
        )
        if (found === undefined) return yield* new ControlError("not_found", "No session of an operator has this id.")
        const { scopes, ...session } = found
        yield* requireScopes(scopes)
        yield* write`DELETE FROM operator_sessions WHERE id = ${id}`
        return {
          result: undefined,
          auditAction: { target: "session", action: "sessions:end" },
          targetId: id,
          snapshots: yield* snapshots(session, null),
          changes: []
        }
      })
    )
  })
})

const Row = OperatorSession.pipe(
  Schema.fieldsAssign({
    created_at: Schema.DateTimeUtcFromDate,
    used_at: Schema.DateTimeUtcFromDate,
    expires_at: Schema.DateTimeUtcFromDate
  })
)
const sessionRows = storedRows(Row, { table: "operator_sessions", key: ["id"] })
const ownedRows = storedRows(Row.pipe(Schema.fieldsAssign({ scopes: Schema.Array(Scope) })), {
  table: "operator_sessions",
  key: ["id"]
})
const snapshots = Snapshots.of(OperatorSession)
