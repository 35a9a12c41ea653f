import { randomBytes } from "node:crypto"
import { Context, DateTime, Duration, Effect, Layer, Option, Redacted, Schema } from "effect"
import type { HttpServerRequest } from "effect/http"
import { Database } from "../../services/Database.ts"
import * as Secret from "../../state/Secret.ts"
import { Vault } from "../../state/Vault.ts"
import { Timestamp } from "../api/schema/Fields.ts"
import { Scope } from "../api/schema/Security.ts"
import { type Actor, Audit, Mutation, Snapshots } from "../audit/Audit.ts"
import { computedRows, type StoreFailure, storedRows, toStoreFailures } from "../store/Rows.ts"
import * as SecretLookUps from "../store/SecretLookUps.ts"
import { lifetime } from "./PresentedSession.ts"
import * as SealedKey from "./SealedKey.ts"
import { isSessionValue } from "./SessionCookie.ts"

/**
 * The most sessions of one token or key, of all tokens, and of all keys. A new session replaces the one that was unused
 * for longest, and that of a key none of a token.
 */
const maxPerOwner = 20
const maxPerKind = 10_000

/** All changes to the number of sessions take this advisory lock. */
const lock = 5_417_283_692n

export type SessionOwner =
  | { readonly _tag: "OperatorToken"; readonly id: string }
  | { readonly _tag: "GatewayKey"; readonly id: string }

export interface Session {
  readonly id: string
  readonly owner: SessionOwner
  readonly name: string
  /** The current scopes of the operator token. A gateway key has none. */
  readonly scopes: ReadonlyArray<Scope>
  /** The SHA-256 of the secret that started the session, in hex. */
  readonly secretDigest: string
  readonly expiresAt: DateTime.Utc
  /** The value of the cookie. */
  readonly value: Redacted.Redacted
  /** The gateway key that started the session, sealed. `null` for operator tokens and sessions of older versions. */
  readonly sealedKey: string | null
}

/** False while a process checks by itself whether a session is still valid. That does not extend the session. */
export const CountsAsUse = Context.Reference<boolean>("svc/control/CountsAsUse", { defaultValue: () => true })

/**
 * Stores the sessions of browsers in the database, by hash, so that every process knows them. A session ends with its
 * token or key, with the secret that started it, when it was not used for 12 hours, and at its `ends_at`. That of a
 * gateway key keeps the key sealed, so that its holder can try the key out.
 */
export class Sessions extends Context.Service<
  Sessions,
  {
    readonly create: (
      owner: SessionOwner,
      secret: Redacted.Redacted
    ) => Effect.Effect<Redacted.Redacted, StoreFailure, Actor>
    /**
     * Finds the first of `values` that is a session. Extends it if the look-up `CountsAsUse`. The caller's address has a
     * share of the look-ups.
     */
    readonly find: (
      values: ReadonlyArray<string>
    ) => Effect.Effect<Option.Option<Session>, StoreFailure, HttpServerRequest.HttpServerRequest>
    /**
     * Returns the digest of the gateway key that started one of `values`, also if the key cannot be used any more. Says
     * nothing of sessions that have ended by themselves.
     */
    readonly keyDigestOf: (
      values: ReadonlyArray<string>
    ) => Effect.Effect<Option.Option<string>, StoreFailure, HttpServerRequest.HttpServerRequest>
    readonly end: (session: Session) => Effect.Effect<void, StoreFailure, Actor>
    /** Opens the gateway key that started the session, where it is kept. */
    readonly keyOf: (session: Session) => Option.Option<Redacted.Redacted>
  }
>()("svc/control/Sessions") {
  static readonly layer = Layer.suspend(() => Layer.effect(Sessions, make))
}

/** Inserts a session, within the limits of their number. Holds the advisory lock until the transaction ends. */
export const insertSession = Effect.fnUntraced(function* (session: {
  readonly tokenId: string | null
  readonly keyId: string | null
  readonly secretHash: Uint8Array
  /** When the session ends whatever happens. */
  readonly endsAt: DateTime.Utc | null
  /** Seals the gateway key under the value of the cookie, which is made here. */
  readonly seal?: (value: Redacted.Redacted) => string
}) {
  const { write } = yield* Mutation
  const now = yield* DateTime.now
  const value = Redacted.make(randomBytes(32).toString("base64url"))
  yield* write`SELECT pg_advisory_xact_lock(${lock})`
  yield* write`DELETE FROM operator_sessions WHERE expires_at <= ${DateTime.toDateUtc(now)}`
  yield* write`DELETE FROM operator_sessions WHERE id IN (SELECT id FROM operator_sessions
    WHERE coalesce(token_id, key_id) = ${session.tokenId ?? session.keyId} ORDER BY used_at DESC OFFSET ${maxPerOwner - 1})`
  yield* write`DELETE FROM operator_sessions WHERE id IN (SELECT id FROM operator_sessions
    WHERE (key_id IS NULL) = ${session.keyId === null} ORDER BY used_at DESC OFFSET ${maxPerKind - 1})`
  const { id } = yield* idRows.only(
    write`INSERT INTO operator_sessions ${write.insert({
      session_hash: Secret.digest(value),
      token_id: session.tokenId,
      key_id: session.keyId,
      secret_hash: session.secretHash,
      created_at: DateTime.toDateUtc(now),
      used_at: DateTime.toDateUtc(now),
      expires_at: DateTime.toDateUtc(DateTime.addDuration(now, lifetime)),
      ends_at: session.endsAt && DateTime.toDateUtc(session.endsAt),
      key_under_cookie: session.seal?.(value) ?? null
    })} RETURNING id`
  )
  return { id, value }
})

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const audit = yield* Audit
  const vault = yield* Vault

  const create = Effect.fn("Sessions.create")((owner: SessionOwner, secret: Redacted.Redacted) =>
    audit.mutate(function* () {
      const now = yield* DateTime.now
      const tokenId = owner._tag === "OperatorToken" ? owner.id : null
      const keyId = owner._tag === "GatewayKey" ? owner.id : null
      const { name } = yield* nameRows.only(sql`SELECT coalesce(
        (SELECT name FROM operator_tokens WHERE id = ${tokenId}),
        (SELECT coalesce(name, key_prefix) FROM api_keys WHERE id = ${keyId})) AS name`)
      const { id, value } = yield* insertSession({
        tokenId,
        keyId,
        secretHash: Secret.digest(secret),
        endsAt: null,
        ...(keyId !== null && { seal: (cookie) => SealedKey.seal(vault, { cookie, keyId }, secret) })
      })
      return {
        result: value,
        auditAction: { target: "session", action: "sessions:sign_in" },
        targetId: id,
        snapshots: yield* snapshots(null, { of: owner._tag, id: owner.id, name, created_at: now }),
        changes: []
      }
    })
  )

  const findFirst = Effect.fnUntraced(function* (digests: ReadonlyArray<string>) {
    const at = DateTime.toDateUtc(yield* DateTime.now)
    const rows = yield* sessionRows.all(sql`
      SELECT s.id, encode(s.session_hash, 'hex') AS digest, s.token_id, s.key_id, encode(s.secret_hash, 'hex') AS secret_digest, s.created_at, s.used_at,
        s.ends_at, s.key_under_cookie, coalesce(t.name, k.name, k.key_prefix) AS name, coalesce(t.scopes, '{}') AS scopes
      FROM operator_sessions s LEFT JOIN operator_tokens t ON t.id = s.token_id LEFT JOIN api_keys k ON k.id = s.key_id
      WHERE s.session_hash = ANY(ARRAY(SELECT decode(digest, 'hex') FROM unnest(${digests}::text[]) AS digest))
        AND s.expires_at > ${at} AND coalesce(s.ends_at > ${at}, true)
        AND ((t.token_hash = s.secret_hash AND NOT t.disabled AND t.revoked_at IS NULL
            AND coalesce(t.expires_at > now(), true))
          OR ((k.key_hash = s.secret_hash OR (k.previous_key_hash = s.secret_hash AND k.previous_key_expires_at > now()))
            AND NOT k.disabled AND k.revoked_at IS NULL AND coalesce(k.expires_at > now(), true)))`)
    const byDigest = new Map(rows.map((row) => [row.digest, row]))
    return digests.flatMap((digest) => byDigest.get(digest) ?? [])[0]
  })

  const lookUp = yield* SecretLookUps.make("sessions", findFirst)

  const findKeyDigest = Effect.fnUntraced(function* (digests: ReadonlyArray<string>) {
    const at = DateTime.toDateUtc(yield* DateTime.now)
    return yield* digestRows.first(sql`SELECT encode(secret_hash, 'hex') AS digest FROM operator_sessions
      WHERE session_hash = ANY(ARRAY(SELECT decode(digest, 'hex') FROM unnest(${digests}::text[]) AS digest))
        AND key_id IS NOT NULL AND expires_at > ${at} AND coalesce(ends_at > ${at}, true) LIMIT 1`)
  })

  const lookUpKey = yield* SecretLookUps.make("sessions", findKeyDigest)

  /** Runs at most once a minute for each session. A failure is ignored, because the request does not need it. */
  const extend = (id: string, now: DateTime.Utc) =>
    Effect.ignore(sql`UPDATE operator_sessions SET used_at = ${DateTime.toDateUtc(now)},
      expires_at = least(${DateTime.toDateUtc(DateTime.addDuration(now, lifetime))}, ends_at) WHERE id = ${id}`)

  /** To look at a key is no use of it, so that sessions of keys note none. */
  const noteTokenUse = (id: string | null) =>
    Effect.ignore(sql`UPDATE operator_tokens SET last_used_at = now()
      WHERE id = ${id} AND coalesce(last_used_at < now() - interval '1 minute', true)`)

  return Sessions.of({
    create,
    find: Effect.fn("Sessions.find")(function* (values) {
      const valueOf = new Map(values.filter(isSessionValue).map((value) => [Secret.digestHex(value), value]))
      const row = yield* lookUp([...valueOf.keys()], yield* SecretLookUps.callerAddress)
      if (row === undefined) return Option.none()
      const now = yield* DateTime.now
      const isDue =
        (yield* CountsAsUse) && DateTime.isGreaterThanOrEqualTo(now, DateTime.addDuration(row.used_at, noteInterval))
      if (isDue) yield* Effect.andThen(extend(row.id, now), noteTokenUse(row.token_id))
      return Option.some(toSession(row, valueOf.get(row.digest) ?? "", isDue ? now : row.used_at))
    }, toStoreFailures),
    keyDigestOf: Effect.fn("Sessions.keyDigestOf")(function* (values) {
      const digests = values.filter(isSessionValue).map(Secret.digestHex)
      const row = yield* lookUpKey(digests, yield* SecretLookUps.callerAddress)
      return Option.map(Option.fromUndefinedOr(row), ({ digest }) => digest)
    }, toStoreFailures),
    end: Effect.fn("Sessions.end")(({ id, name, owner }) =>
      audit.mutate(function* ({ write }) {
        yield* write`DELETE FROM operator_sessions WHERE id = ${id}`
        return {
          result: undefined,
          auditAction: { target: "session", action: "sessions:sign_out" },
          targetId: id,
          snapshots: yield* snapshots({ of: owner._tag, id: owner.id, name, created_at: yield* DateTime.now }, null),
          changes: []
        }
      })
    ),
    keyOf: ({ owner, sealedKey, secretDigest, value }) =>
      sealedKey === null || owner._tag !== "GatewayKey"
        ? Option.none()
        : Option.filter(
            SealedKey.open(vault, { cookie: value, keyId: owner.id }, sealedKey),
            (key) => Secret.digestHex(Redacted.value(key)) === secretDigest
          )
  })
})

const noteInterval = Duration.minutes(1)

const Row = Schema.Struct({
  id: Schema.String,
  digest: Schema.String,
  token_id: Schema.NullOr(Schema.String),
  key_id: Schema.NullOr(Schema.String),
  secret_digest: Schema.String,
  name: Schema.String,
  /** Scopes that only a newer version knows are ignored. */
  scopes: Schema.Array(Schema.String),
  created_at: Schema.DateTimeUtcFromDate,
  used_at: Schema.DateTimeUtcFromDate,
  ends_at: Schema.NullOr(Schema.DateTimeUtcFromDate),
  key_under_cookie: Schema.NullOr(Schema.String)
})
const nameRows = computedRows(Schema.Struct({ name: Schema.NullOr(Schema.String) }))
const digestRows = computedRows(Schema.Struct({ digest: Schema.String }))
const idRows = computedRows(Schema.Struct({ id: Schema.String }))
const sessionRows = storedRows(Row, { table: "operator_sessions", key: ["id"] })
const isScope = Schema.is(Scope)

const toSession = (row: typeof Row.Type, value: string, usedAt: DateTime.Utc): Session => ({
  id: row.id,
  owner:
    row.token_id === null ? { _tag: "GatewayKey", id: row.key_id ?? "" } : { _tag: "OperatorToken", id: row.token_id },
  name: row.name,
  scopes: row.scopes.filter(isScope),
  secretDigest: row.secret_digest,
  expiresAt: DateTime.min(
    DateTime.addDuration(usedAt, lifetime),
    row.ends_at ?? DateTime.addDuration(usedAt, lifetime)
  ),
  value: Redacted.make(value),
  sealedKey: row.key_under_cookie
})

const snapshots = Snapshots.of(
  Schema.Struct({ of: Schema.String, id: Schema.String, name: Schema.NullOr(Schema.String), created_at: Timestamp })
)
