import { randomBytes } from "node:crypto"
import { Context, Effect, Layer, Option, Redacted, Schema } from "effect"
import { digestHex } from "../gateway/model/Secret.ts"
import { Database } from "../services/Database.ts"
import { Redis, type RedisError } from "../services/Redis.ts"
import { ControlError } from "./api/Errors.ts"
import { Scope } from "./api/Security.ts"
import { rows, type StoreFailure, settled } from "./Store.ts"

/** An hour, however much it is used: then the operator's token is asked for again. */
export const lifetimeSeconds = 3600

/** Of all operators together; the oldest ends when there is one more. */
const mostSessions = 1000

/** Who began a session, with what the token may do now. */
export interface Session {
  readonly tokenId: string
  readonly scopes: ReadonlyArray<Scope>
}

/**
 * What a browser holds in place of the operator's token while it looks at the upstream's UI: a random id that opens
 * nothing else. Redis knows its digest alone, and for how long; it ends with the token that began it.
 */
export class UpstreamUiSessions extends Context.Service<
  UpstreamUiSessions,
  {
    readonly begin: (tokenId: string) => Effect.Effect<Redacted.Redacted, RedisError>
    readonly find: (id: string) => Effect.Effect<Option.Option<Session>, StoreFailure>
  }
>()("svc/control/UpstreamUiSessions") {
  static readonly layer = Layer.suspend(() => Layer.effect(UpstreamUiSessions, make))
}

const make = Effect.gen(function* () {
  const { sql } = yield* Database
  const redis = yield* Redis
  const all = redis.key("upstream-ui:sessions")
  const keyOf = (digest: string) => redis.key(`upstream-ui:session:${digest}`)

  return UpstreamUiSessions.of({
    begin: Effect.fn("UpstreamUiSessions.begin")(function* (tokenId) {
      const id = randomBytes(32).toString("base64url")
      const digest = digestHex(id)
      yield* redis.command("SET", keyOf(digest), tokenId, "EX", lifetimeSeconds)
      yield* redis.command("LPUSH", all, digest)
      yield* redis.command("EXPIRE", all, lifetimeSeconds)
      const oldest = yield* redis.command("LRANGE", all, mostSessions, -1)
      yield* redis.command("LTRIM", all, 0, mostSessions - 1)
      yield* Effect.forEach(Array.isArray(oldest) ? oldest : [], (one) => redis.command("DEL", keyOf(String(one))))
      return Redacted.make(id)
    }),
    find: Effect.fn("UpstreamUiSessions.find")(function* (id) {
      const tokenId = yield* Effect.mapError(
        redis.command("GET", keyOf(digestHex(id))),
        () => new ControlError("store_unavailable", "Redis cannot answer now; try again later.")
      )
      if (typeof tokenId !== "string") return Option.none()
      const token = yield* tokens.first(sql`
        SELECT scopes FROM operator_tokens WHERE id = ${tokenId}::uuid AND NOT disabled AND revoked_at IS NULL
          AND (expires_at IS NULL OR expires_at > now())`)
      return Option.map(Option.fromUndefinedOr(token), ({ scopes }) => ({ tokenId, scopes }))
    }, settled)
  })
})

const tokens = rows(Schema.Struct({ scopes: Schema.Array(Scope) }))
