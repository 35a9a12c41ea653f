import { Context, Data, Effect, Layer, Option, Redacted, Runtime, Schema } from "effect"
import type { SqlError } from "effect/sql"
import * as Secret from "../gateway/model/Secret.ts"
import { Database } from "../services/Database.ts"
import { type Actor, Audit, Mutation, Snapshots } from "./Audit.ts"
import { ControlError, type Refused } from "./api/Errors.ts"
import { OperatorToken } from "./api/OperatorTokenApi.ts"
import { Operator, type Scope } from "./api/Security.ts"
import { rowStamps, rows, type StoreFailure, settled } from "./Store.ts"

/** `GATEWAY_ADMIN_TOKEN` is set, is needed, and is not an operator token. */
export class MalformedAdminToken extends Data.TaggedError("MalformedAdminToken") {
  /** `EX_CONFIG`: trying again will not help. */
  override readonly [Runtime.errorExitCode] = 78

  override get message() {
    return `GATEWAY_ADMIN_TOKEN must begin with ${Secret.operatorTokenPrefix} and have more than ${Secret.shownLength} characters.`
  }
}

/**
 * Makes sure that there is exactly one active operator token, however many processes start at once.
 *
 * With `adminToken` its hash is stored and `None` returned. Without one a token is made and returned: whoever calls this
 * prints it, because nothing can show it again. When a token is active already, nothing happens.
 */
export const bootstrap = Effect.fn("OperatorTokens.bootstrap")(function* (
  adminToken: Option.Option<Redacted.Redacted>
): Effect.fn.Return<Option.Option<Redacted.Redacted>, MalformedAdminToken | SqlError.SqlError, Database> {
  const { sql } = yield* Database
  const [active] = yield* sql`SELECT 1 FROM operator_tokens WHERE NOT disabled AND revoked_at IS NULL`
  if (active !== undefined) return Option.none()
  const token = Option.getOrElse(adminToken, () => Secret.mint(Secret.operatorTokenPrefix))
  if (!Secret.wellFormed(Secret.operatorTokenPrefix, Redacted.value(token))) return yield* new MalformedAdminToken()
  const [created] = yield* sql`
    INSERT INTO operator_tokens (token_prefix, token_hash) VALUES (${Secret.shown(token)}, ${Secret.digest(token)})
    ON CONFLICT ((true)) WHERE NOT disabled AND revoked_at IS NULL DO NOTHING RETURNING id`
  return created !== undefined && Option.isNone(adminToken) ? Option.some(token) : Option.none()
})

/** A token that was presented and is known. */
export interface Presented {
  readonly id: string
  readonly scopes: ReadonlyArray<Scope>
  readonly active: boolean
}

/** Operator tokens by their digest: the value itself is nowhere. */
export class OperatorTokens extends Context.Service<
  OperatorTokens,
  {
    readonly find: (token: Redacted.Redacted) => Effect.Effect<Option.Option<Presented>, StoreFailure>
    /** Ends the caller's own token and begins another with its roles and scopes, in one step. */
    readonly rotate: Effect.Effect<
      { readonly token: OperatorToken; readonly raw_token: Redacted.Redacted },
      Refused<"disabled_operator_token"> | StoreFailure,
      Actor
    >
  }
>()("svc/control/OperatorTokens") {
  static readonly layer = Layer.suspend(() => Layer.effect(OperatorTokens, make))
}

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const columns = sql.literal(
    "id, token_prefix, roles, scopes, disabled, revoked_at, last_used_at, created_at, updated_at"
  )

  // Once a minute is enough to see that a token is in use, and a use must not fail because it could not be noted.
  const noteUse = (id: string) => Effect.ignore(sql`UPDATE operator_tokens SET last_used_at = now() WHERE id = ${id}`)

  return OperatorTokens.of({
    find: Effect.fn("OperatorTokens.find")(function* (token) {
      const row = yield* presented.first(sql`
        SELECT id, scopes, NOT disabled AND revoked_at IS NULL AS active,
          coalesce(last_used_at < now() - interval '1 minute', true) AS unnoted
        FROM operator_tokens WHERE token_hash = ${Secret.digest(token)}`)
      if (row?.active && row.unnoted) yield* noteUse(row.id)
      return Option.fromUndefinedOr(row)
    }, settled),

    rotate: audit
      .mutate(
        Effect.gen(function* () {
          const { write } = yield* Mutation
          const { tokenId } = yield* Operator
          const before = yield* found.first(sql`
            SELECT ${columns} FROM operator_tokens
            WHERE id = ${tokenId} AND NOT disabled AND revoked_at IS NULL FOR UPDATE`)
          if (before === undefined) {
            return yield* new ControlError("disabled_operator_token", "This operator token was rotated away.")
          }
          yield* write`
            UPDATE operator_tokens SET disabled = true, revoked_at = now(), updated_at = now() WHERE id = ${tokenId}`
          const raw = Secret.mint(Secret.operatorTokenPrefix)
          const token = yield* found.only(write`
            INSERT INTO operator_tokens (token_prefix, token_hash, roles, scopes)
            VALUES (${Secret.shown(raw)}, ${Secret.digest(raw)}, ${before.roles}, ${before.scopes})
            RETURNING ${columns}`)
          return {
            result: { token, raw_token: raw },
            deed: { target: "operator_token", action: "operators:rotate" },
            targetId: token.id,
            snapshots: yield* snapshots(before, token),
            changes: []
          }
        })
      )
      .pipe(Effect.withSpan("OperatorTokens.rotate"))
  })
})

const Time = Schema.NullOr(Schema.DateTimeUtcFromDate)

const found = rows(OperatorToken.pipe(Schema.fieldsAssign({ ...rowStamps, revoked_at: Time, last_used_at: Time })))
const snapshots = Snapshots.of(OperatorToken)

const presented = rows(
  Schema.Struct({
    id: Schema.String,
    scopes: OperatorToken.fields.scopes,
    active: Schema.Boolean,
    unnoted: Schema.Boolean
  })
)
