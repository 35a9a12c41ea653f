import { randomBytes } from "node:crypto"
import { Context, DateTime, Duration, Effect, Layer, Option, Redacted, Schema } from "effect"
import { Database } from "../../services/Database.ts"
import { Redis, type RedisError } from "../../services/Redis.ts"
import { digestHex } from "../../state/Secret.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { Scope } from "../api/schema/Security.ts"
import { type StoreFailure, storedRows, toStoreFailures } from "../store/Rows.ts"

interface TokenKind {
  readonly name: "code" | "session"
  readonly lifetime: Duration.Duration
}

/** Starts one session. A code is part of a URL, so it expires soon and works only once. */
const codeKind: TokenKind = { name: "code", lifetime: Duration.minutes(1) }

/** The value of the session cookie. Requests do not extend its lifetime. */
const sessionKind: TokenKind = { name: "session", lifetime: Duration.hours(1) }

export const sessionLifetime = sessionKind.lifetime

/** The maximum number of codes, and of sessions, of all operators. A new code or session replaces the oldest. */
const maxPerKind = 1000

/** The operator token that started the session, with its current scopes. */
interface Session {
  readonly tokenId: string
  readonly scopes: ReadonlyArray<Scope>
}

interface SessionCode {
  readonly value: Redacted.Redacted
  readonly expiresAt: DateTime.Utc
}

/**
 * Stores browser sessions for the upstream's web interface. A code from the operator API starts a session. The session
 * ends with the operator's token at the latest. Redis contains only digests of codes and sessions.
 */
export class UpstreamUiSessions extends Context.Service<
  UpstreamUiSessions,
  {
    readonly createCode: (tokenId: string) => Effect.Effect<SessionCode, Refused<"store_unavailable">>
    /** Starts a session. Returns `none` if the code is unknown, has expired or was used. */
    readonly redeem: (code: string) => Effect.Effect<Option.Option<Redacted.Redacted>, Refused<"store_unavailable">>
    readonly find: (id: string) => Effect.Effect<Option.Option<Session>, StoreFailure>
  }
>()("svc/control/UpstreamUiSessions") {
  static readonly layer = Layer.suspend(() => Layer.effect(UpstreamUiSessions, make))
}

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const redis = yield* Redis
  const keyOf = ({ name }: TokenKind, digest: string) => redis.key(`upstream-ui:${name}:${digest}`)

  const create = Effect.fnUntraced(function* (kind: TokenKind, tokenId: string) {
    const digests = redis.key(`upstream-ui:${kind.name}s`)
    const seconds = Duration.toSeconds(kind.lifetime)
    const value = randomBytes(32).toString("base64url")
    const digest = digestHex(value)
    yield* redis.command("SET", keyOf(kind, digest), tokenId, "EX", seconds)
    yield* redis.command("LPUSH", digests, digest)
    yield* redis.command("EXPIRE", digests, seconds)
    const oldest = yield* redis.command("LRANGE", digests, maxPerKind, -1)
    yield* redis.command("LTRIM", digests, 0, maxPerKind - 1)
    yield* Effect.forEach(Array.isArray(oldest) ? oldest : [], (digest) =>
      redis.command("DEL", keyOf(kind, String(digest)))
    )
    return Redacted.make(value)
  })

  const findTokenId = Effect.fnUntraced(function* (kind: TokenKind, value: string) {
    const tokenId = yield* redis.command("GET", keyOf(kind, digestHex(value)))
    return typeof tokenId === "string" ? Option.some(tokenId) : Option.none()
  })

  return UpstreamUiSessions.of({
    createCode: Effect.fn("UpstreamUiSessions.createCode")(function* (tokenId) {
      const expiresAt = DateTime.addDuration(yield* DateTime.now, codeKind.lifetime)
      return { value: yield* create(codeKind, tokenId), expiresAt }
    }, orStoreUnavailable),
    redeem: Effect.fn("UpstreamUiSessions.redeem")(function* (value) {
      const tokenId = yield* findTokenId(codeKind, value)
      if (Option.isNone(tokenId)) return Option.none()
      // If several requests use a code at once, only the request that deletes the code starts a session.
      const deleted = yield* redis.command("DEL", keyOf(codeKind, digestHex(value)))
      return deleted === 1 ? Option.some(yield* create(sessionKind, tokenId.value)) : Option.none()
    }, orStoreUnavailable),
    find: Effect.fn("UpstreamUiSessions.find")(function* (id) {
      const tokenId = yield* orStoreUnavailable(findTokenId(sessionKind, id))
      if (Option.isNone(tokenId)) return Option.none()
      const token = yield* tokenRows.first(sql`
        SELECT scopes FROM operator_tokens WHERE id = ${tokenId.value}::uuid AND NOT disabled AND revoked_at IS NULL
          AND (expires_at IS NULL OR expires_at > now())`)
      return Option.map(Option.fromUndefinedOr(token), ({ scopes }) => ({
        tokenId: tokenId.value,
        // Scopes that only a newer version knows are ignored.
        scopes: scopes.filter(isScope)
      }))
    }, toStoreFailures)
  })
})

const orStoreUnavailable = <A, R>(work: Effect.Effect<A, RedisError, R>) =>
  Effect.mapError(work, () => new ControlError("store_unavailable", "Redis is unavailable; try again later."))

const isScope = Schema.is(Scope)
const tokenRows = storedRows(Schema.Struct({ scopes: Schema.Array(Schema.String) }), {
  table: "operator_tokens",
  key: ["id"]
})
