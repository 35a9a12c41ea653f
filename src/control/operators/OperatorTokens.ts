import { Context, Data, DateTime, Effect, Function, Layer, Option, Redacted, Runtime, Schema } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import { Database } from "../../services/Database.ts"
import * as Secret from "../../state/Secret.ts"
import {
  type ListedOperatorToken,
  type MintedToken,
  type NewOperatorToken,
  OperatorToken
} from "../api/OperatorTokenApi.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { type Cursor, isUnreadable, type Unreadable } from "../api/schema/Fields.ts"
import { allows, Operator, Scope } from "../api/schema/Security.ts"
import { type Actor, Audit, Mutation, Snapshots } from "../audit/Audit.ts"
import { keyset, type Page, readPage } from "../store/Paging.ts"
import { Count, computedRows, rowTimestamps, type StoreFailure, storedRows, toStoreFailures } from "../store/Rows.ts"

/** No operator token is active, and the value of `GATEWAY_ADMIN_TOKEN` is not a valid operator token. */
export class MalformedAdminToken extends Data.TaggedError("MalformedAdminToken") {
  /** `EX_CONFIG` tells a supervisor that a restart of the process does not help. */
  override readonly [Runtime.errorExitCode] = 78

  override get message() {
    return `GATEWAY_ADMIN_TOKEN must begin with ${Secret.operatorTokenPrefix} and have ${Secret.minChosenLength} to 256 characters. Create one with op_live_$(openssl rand -hex 32).`
  }
}

/** All changes to operator tokens take this advisory lock, because some rules concern all tokens together. */
const lock = 5_417_283_691n

export const activeCondition = (sql: SqlClient.SqlClient) =>
  sql`NOT disabled AND revoked_at IS NULL AND coalesce(expires_at > now(), true)`

/** Nobody has the secret of a row that stands for a person who signs in at the identity provider. */
const usableCondition = (sql: SqlClient.SqlClient) => sql`${activeCondition(sql)} AND identity_hash IS NULL`

/**
 * Creates an operator token if none is active. Concurrent processes create only one token. With `adminToken`, stores
 * its hash and returns `None`. Otherwise returns a new token. The caller must print it, because only its hash is
 * stored.
 */
export const bootstrap = Effect.fn("OperatorTokens.bootstrap")(function* (
  adminToken: Option.Option<Redacted.Redacted>
): Effect.fn.Return<Option.Option<Redacted.Redacted>, MalformedAdminToken | SqlError.SqlError, Database> {
  const { sql, transaction } = yield* Database
  return yield* transaction(
    Effect.gen(function* () {
      yield* sql`SELECT pg_advisory_xact_lock(${lock})`
      const [known] = yield* sql`SELECT 1 FROM operator_tokens WHERE ${usableCondition(sql)} LIMIT 1`
      if (known !== undefined) return Option.none()
      const token = Option.getOrElse(adminToken, () => Secret.mint(Secret.operatorTokenPrefix))
      if (!Secret.isStrongEnough(Secret.operatorTokenPrefix, Redacted.value(token)))
        return yield* new MalformedAdminToken()
      yield* sql`
        INSERT INTO operator_tokens (token_prefix, token_hash) VALUES (${Secret.displayPrefix(token)}, ${Secret.digest(token)})`
      return Option.isNone(adminToken) ? Option.some(token) : Option.none()
    })
  )
})

export const isActive = Effect.fn("OperatorTokens.isActive")(function* (token: Redacted.Redacted) {
  const { sql } = yield* Database
  const found =
    yield* sql`SELECT 1 FROM operator_tokens WHERE token_hash = ${Secret.digest(token)} AND ${activeCondition(sql)}`
  return found.length > 0
})

export interface KnownToken {
  readonly id: string
  readonly scopes: ReadonlyArray<Scope>
  readonly active: boolean
}

type ScopeRefused = Refused<"insufficient_operator_scope">

export class OperatorTokens extends Context.Service<
  OperatorTokens,
  {
    readonly find: (token: Redacted.Redacted) => Effect.Effect<Option.Option<KnownToken>, StoreFailure>
    /** Includes rotated and revoked tokens. The newest token comes first. */
    readonly list: (query: {
      readonly limit?: number
      readonly cursor?: Cursor
    }) => Effect.Effect<Page<ListedOperatorToken>, StoreFailure, Operator>
    readonly get: (id: string) => Effect.Effect<OperatorToken, Refused<"not_found"> | StoreFailure>
    readonly create: (
      token: NewOperatorToken
    ) => Effect.Effect<MintedToken, ScopeRefused | Refused<"too_many_operator_tokens"> | StoreFailure, Actor>
    /** Revokes a token and creates its successor with the same name, roles, scopes and expiry, in one transaction. */
    readonly rotate: (
      id: string
    ) => Effect.Effect<
      MintedToken,
      ScopeRefused | Refused<"not_found" | "operator_token_not_active"> | StoreFailure,
      Actor
    >
    readonly rotateOwn: Effect.Effect<MintedToken, Refused<"disabled_operator_token"> | StoreFailure, Actor>
    /**
     * Revokes a token, unless it is the last token with all scopes and no expiry. A revoked token stays unchanged. If
     * this version cannot decode the token's row, the calling token needs all scopes.
     */
    readonly revoke: (
      id: string
    ) => Effect.Effect<
      OperatorToken | Unreadable,
      ScopeRefused | Refused<"not_found" | "last_operator_token"> | StoreFailure,
      Actor
    >
  }
>()("svc/control/OperatorTokens") {
  static readonly layer = Layer.suspend(() => Layer.effect(OperatorTokens, make))
}

const defaultLimit = 100
const maxActive = 100

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const columns = sql.literal(
    `id, name, token_prefix, roles, scopes, disabled, revoked_at, expires_at, last_used_at, created_at, updated_at,
      CASE WHEN identity_hash IS NULL THEN 'token' ELSE 'person' END AS kind`
  )
  const tokenIsActive = activeCondition(sql)
  const tokenIsUsable = usableCondition(sql)

  // Runs at most once a minute for each token. A failure is ignored, because the request does not need this update.
  const recordUse = (id: string) => Effect.ignore(sql`UPDATE operator_tokens SET last_used_at = now() WHERE id = ${id}`)

  const takeLock = sql`SELECT pg_advisory_xact_lock(${lock})`

  const get = Effect.fn("OperatorTokens.get")(function* (id: string) {
    return yield* orMissing(yield* tokenRows.first(sql`SELECT ${columns} FROM operator_tokens WHERE id = ${id}`))
  }, toStoreFailures)

  const mint = Effect.fnUntraced(function* (
    columnsOf: Pick<OperatorToken, "name" | "roles" | "scopes">,
    expiresAt: DateTime.Utc | null
  ) {
    const { write } = yield* Mutation
    const raw_token = Secret.mint(Secret.operatorTokenPrefix)
    const token = yield* tokenRows.only(write`
      INSERT INTO operator_tokens (name, token_prefix, token_hash, roles, scopes, expires_at)
      VALUES (${columnsOf.name}, ${Secret.displayPrefix(raw_token)}, ${Secret.digest(raw_token)}, ${columnsOf.roles},
        ${columnsOf.scopes}, ${expiresAt && DateTime.toDateUtc(expiresAt)})
      RETURNING ${columns}`)
    return { token, raw_token }
  })

  const revokeRow = Effect.fnUntraced(function* (id: string) {
    const { write } = yield* Mutation
    return yield* tokenRows.firstOrUnreadable(write`
      UPDATE operator_tokens SET disabled = true, revoked_at = now(), updated_at = now()
      WHERE id = ${id} AND revoked_at IS NULL RETURNING ${columns}`)
  })

  /** Locks the row of an active token. Other transactions can still insert audit events that refer to the token. */
  const lockActive = (id: string | null) =>
    tokenRows.first(sql`SELECT ${columns} FROM operator_tokens WHERE id = ${id} AND ${tokenIsUsable} FOR NO KEY UPDATE`)

  const replaceToken = Effect.fnUntraced(function* (before: OperatorToken) {
    yield* revokeRow(before.id)
    const minted = yield* mint(before, before.expires_at)
    return {
      result: minted,
      auditAction: { target: "operator_token" as const, action: "operators:rotate" as const },
      targetId: minted.token.id,
      snapshots: yield* snapshots(before, minted.token),
      changes: []
    }
  })

  const create = Effect.fn("OperatorTokens.create")(function* ({ expires_at = null, name, scopes }: NewOperatorToken) {
    yield* requireScopes(scopes)
    if (expires_at !== null && DateTime.isLessThanOrEqualTo(expires_at, yield* DateTime.now)) {
      return yield* new ControlError("invalid_request", "expires_at must be in the future.", { param: "expires_at" })
    }
    return yield* audit.mutate(function* () {
      yield* takeLock
      const { n } = yield* countRows.only(sql`SELECT count(*) AS n FROM operator_tokens WHERE ${tokenIsUsable}`)
      if (n >= maxActive) {
        return yield* new ControlError(
          "too_many_operator_tokens",
          `The maximum of ${maxActive} active operator tokens is reached. Revoke one first.`
        )
      }
      const minted = yield* mint({ name, scopes, roles: [scopes.includes("*") ? "owner" : "operator"] }, expires_at)
      return {
        result: minted,
        auditAction: { target: "operator_token", action: "operators:create" },
        targetId: minted.token.id,
        snapshots: yield* snapshots(null, minted.token),
        changes: []
      }
    })
  })

  const rotate = Effect.fn("OperatorTokens.rotate")(function* (id: string) {
    return yield* audit.mutate(function* () {
      yield* takeLock
      const before = yield* lockActive(id)
      if (before === undefined) {
        yield* get(id)
        return yield* new ControlError(
          "operator_token_not_active",
          "This operator token was rotated, was revoked, has expired, or stands for a person who signs in at the identity provider. Create another one."
        )
      }
      yield* requireScopes(before.scopes)
      return yield* replaceToken(before)
    })
  })

  const rotateOwn = audit
    .mutate(function* () {
      yield* takeLock
      const { tokenId } = yield* Operator
      const before = yield* lockActive(tokenId)
      if (before === undefined) {
        return yield* new ControlError(
          "disabled_operator_token",
          "This operator token was rotated, or stands for a person who signs in at the identity provider. Use the token that replaced it, or create another one."
        )
      }
      return yield* replaceToken(before)
    })
    .pipe(Effect.withSpan("OperatorTokens.rotateOwn"))

  const revoke = Effect.fn("OperatorTokens.revoke")(function* (id: string) {
    return yield* audit.mutate(function* () {
      yield* takeLock
      const before = yield* Effect.flatMap(
        tokenRows.firstOrUnreadable(sql`SELECT ${columns} FROM operator_tokens WHERE id = ${id}`),
        orMissing
      )
      // A row that cannot be decoded may have any scope.
      yield* requireScopes(isUnreadable(before) ? ["*"] : before.scopes)
      const lasting = yield* sql<{ readonly id: string }>`
        SELECT id FROM operator_tokens WHERE ${tokenIsActive} AND expires_at IS NULL AND '*' = ANY (scopes)`
      if (lasting.length === 1 && lasting[0]?.id === id.toLowerCase()) {
        return yield* new ControlError(
          "last_operator_token",
          "This is the last operator token with the scope * that does not expire. Create another one first, or rotate this one."
        )
      }
      const token = (yield* revokeRow(id)) ?? before
      return {
        result: token,
        auditAction: { target: "operator_token", action: "operators:revoke" },
        targetId: id,
        snapshots: yield* snapshots(before, token),
        changes: []
      }
    })
  })

  return OperatorTokens.of({
    find: Effect.fn("OperatorTokens.find")(function* (token) {
      const row = yield* knownTokenRows.first(sql`
        SELECT id, scopes, ${tokenIsActive} AS active, coalesce(last_used_at < now() - interval '1 minute', true) AS unnoted
        FROM operator_tokens WHERE token_hash = ${Secret.digest(token)}`)
      if (row?.active && row.unnoted) yield* recordUse(row.id)
      return Option.map(Option.fromUndefinedOr(row), ({ scopes, ...rest }) => ({
        ...rest,
        scopes: scopes.filter(isScope)
      }))
    }, toStoreFailures),
    list: Effect.fn("OperatorTokens.list")(function* ({ cursor, limit = defaultLimit }) {
      const at = keyset(sql, "operator_tokens", cursor)
      const { tokenId } = yield* Operator
      return yield* readPage(
        listedRows,
        sql`SELECT ${columns}, ${tokenIsActive} AS active, coalesce(id = ${tokenId}, false) AS is_caller,
          (SELECT count(*)::int FROM operator_sessions WHERE token_id = operator_tokens.id AND secret_hash = token_hash
            AND operator_sessions.expires_at > now()) AS session_count, ${at.micros} FROM operator_tokens WHERE ${at.afterCursor} ORDER BY ${at.order} LIMIT ${limit + 1}`,
        limit,
        Function.identity
      )
    }, toStoreFailures),
    get,
    create,
    rotate,
    rotateOwn,
    revoke
  })
})

/** The calling token needs all of `scopes`. It could otherwise create or revoke a more powerful token. */
export const requireScopes = Effect.fnUntraced(function* (scopes: ReadonlyArray<Scope>) {
  const operator = yield* Operator
  const missing = scopes.filter((scope) => !allows(operator.scopes, [scope]))
  if (missing.length > 0) {
    return yield* new ControlError(
      "insufficient_operator_scope",
      `The operator token lacks ${missing.join(", ")}, so it cannot create, rotate or revoke a token with that scope.`,
      { param: "scopes" }
    )
  }
})

const orMissing = <A>(token: A | undefined): Effect.Effect<A, Refused<"not_found">> =>
  token === undefined
    ? Effect.fail(new ControlError("not_found", "No operator token has this id."))
    : Effect.succeed(token)

const Time = Schema.NullOr(Schema.DateTimeUtcFromDate)

const isScope = Schema.is(Scope)

const Row = OperatorToken.pipe(
  Schema.fieldsAssign({ ...rowTimestamps, revoked_at: Time, expires_at: Time, last_used_at: Time })
)
const tokenRows = storedRows(Row, { table: "operator_tokens", key: ["id"] })
const listedRows = storedRows(
  Row.pipe(Schema.fieldsAssign({ active: Schema.Boolean, is_caller: Schema.Boolean, session_count: Schema.Int })),
  { table: "operator_tokens", key: ["id"] }
)
const countRows = computedRows(Schema.Struct({ n: Count }))
const snapshots = Snapshots.of(OperatorToken)

const knownTokenRows = storedRows(
  Schema.Struct({
    id: Schema.String,
    /** Scopes that only a newer version knows are ignored. */
    scopes: Schema.Array(Schema.String),
    active: Schema.Boolean,
    unnoted: Schema.Boolean
  }),
  { table: "operator_tokens", key: ["id"] }
)
