import { randomUUID } from "node:crypto"
import { Clock, Context, Effect, Layer, Option, Redacted, Schema } from "effect"
import { type Headers, HttpServerRequest } from "effect/http"
import * as EffectivePolicy from "../../policy/EffectivePolicy.ts"
import { exceededUnusedDays, type KeyRefusal, refusal, refusalOf } from "../../policy/KeyState.ts"
import { Database } from "../../services/Database.ts"
import * as Secret from "../../state/Secret.ts"
import * as StoredKeys from "../../state/StoredKeys.ts"
import { disableUnused } from "../../state/UnusedKeys.ts"
import { ControlError, type Refused, RequestId } from "../api/schema/Errors.ts"
import { KeyAuthorization, KeyHolder } from "../api/schema/Security.ts"
import { bearerToken, findSession, sessionServices } from "../operators/Authentication.ts"
import * as PolicyState from "../policies/PolicyState.ts"
import { Sessions } from "../session/Sessions.ts"
import { type StoreFailure, storedRows, toStoreFailures } from "../store/Rows.ts"
import * as SecretLookUps from "../store/SecretLookUps.ts"

export type KeyRefused = ControlError<
  "invalid_virtual_key" | "disabled_virtual_key" | "revoked_virtual_key" | "expired_virtual_key"
>

type Authenticated = Effect.Effect<
  Omit<KeyHolder["Service"], "secret">,
  KeyRefused | StoreFailure,
  HttpServerRequest.HttpServerRequest
>

/**
 * Authenticates gateway keys that are presented to the control listener. A program that sends the key uses it. A person
 * who is signed in with it does not: `last_used_at` would otherwise be the time at which its holder looked there.
 */
export class PresentedKeys extends Context.Service<
  PresentedKeys,
  {
    readonly authenticate: (raw: Redacted.Redacted) => Authenticated
    /** Authenticates a person who signs in. */
    readonly authenticatePerson: (raw: Redacted.Redacted) => Authenticated
    /** Authenticates a person who is signed in. `digest` is the SHA-256 of the raw key, in hex. */
    readonly authenticateDigest: (digest: string) => Authenticated
  }
>()("svc/control/PresentedKeys") {
  static readonly layer = Layer.suspend(() => Layer.effect(PresentedKeys, make))
}

const make = Effect.gen(function* () {
  const database = yield* Database
  const { sql } = database
  const state = PolicyState.make(sql)

  const find = (digest: string) =>
    toStoreFailures(
      Effect.map(
        keyRows.first(sql`
            SELECT ${sql.literal(`${StoredKeys.columns}, ${StoredKeys.secretEndsAtSql}`)},
              coalesce(k.last_used_at < now() - interval '1 minute', true) AS is_idle
            FROM api_keys k JOIN (SELECT ${digest}::text) AS asked (digest) ON ${sql.literal(StoredKeys.matchesSecretSql)}`),
        (row) =>
          row && {
            ...StoredKeys.keyOf(row),
            secretEndsAt: Option.fromNullOr(row.secret_ends_at),
            isIdle: row.is_idle
          }
      )
    )

  /** Disables a key that was unused for too long, as the gateway does. The current request does not count as use. */
  const disableIfUnused = Effect.fnUntraced(function* (key: StoredKeys.StoredKey, now: number) {
    const layers = yield* state.layersForOwner(StoredKeys.ownerOf(key))
    const days = exceededUnusedDays(key, EffectivePolicy.of([...layers, key.ownLayer]).policy, now)
    if (days === undefined) return false
    const requestId = Option.getOrElse(yield* Effect.serviceOption(RequestId), randomUUID)
    yield* Effect.provideService(disableUnused(key.id, days, requestId), Database, database)
    return true
  }, toStoreFailures)

  const lookUp = yield* SecretLookUps.make("gateway keys", ([digest]) => find(digest))

  const authenticate = Effect.fnUntraced(function* (digest: string, isUse: boolean) {
    const known = yield* lookUp([digest], yield* SecretLookUps.callerAddress)
    const now = yield* Clock.currentTimeMillis
    const key =
      known?.isIdle && refusalOf(known, now) === undefined && (yield* disableIfUnused(known, now))
        ? yield* find(digest)
        : known
    if (key === undefined) return yield* toControlError(refusal("invalid_virtual_key"))
    const reason = refusalOf(key, now)
    if (reason !== undefined) return yield* toControlError(reason)
    if (isUse && key.isIdle) yield* Effect.ignore(sql`UPDATE api_keys SET last_used_at = now() WHERE id = ${key.id}`)
    return {
      keyId: key.id,
      secretDigest: digest,
      projectId: key.projectId,
      teamId: key.teamId,
      guardrails: key.ownLayer.guardrails
    }
  })

  const authenticateRaw = (raw: Redacted.Redacted, isUse: boolean) =>
    Secret.isMistyped(Redacted.value(raw))
      ? Effect.fail(toControlError(refusal("invalid_virtual_key")))
      : authenticate(Secret.digestHex(Redacted.value(raw)), isUse)

  return PresentedKeys.of({
    authenticate: (raw) => authenticateRaw(raw, true),
    authenticatePerson: (raw) => authenticateRaw(raw, false),
    authenticateDigest: (digest) => authenticate(digest, false)
  })
})

/** Also accepts the session cookie of a gateway key. */
export const layer: Layer.Layer<KeyAuthorization, never, PresentedKeys | Sessions> = Layer.effect(
  KeyAuthorization,
  Effect.gen(function* () {
    const keys = yield* PresentedKeys
    const services = yield* sessionServices
    const sessions = yield* Sessions

    const authenticateHolder = Effect.gen(function* () {
      const { headers } = yield* HttpServerRequest.HttpServerRequest
      const isPresented = headers["authorization"] !== undefined || headers["x-api-key"] !== undefined
      const session = isPresented ? Option.none() : yield* Effect.provideContext(findSession, services)
      if (Option.isNone(session)) return yield* authenticatePresented(keys)
      if (session.value.owner._tag !== "GatewayKey") return yield* noKey
      const holder = yield* keys.authenticateDigest(session.value.secretDigest)
      return { ...holder, secret: Effect.sync(() => sessions.keyOf(session.value)) }
    })

    return authorizationBy(authenticateHolder)
  })
)

type HolderRefused =
  | KeyRefused
  | StoreFailure
  | Refused<
      | "missing_authorization"
      | "malformed_authorization"
      | "invalid_session"
      | "cross_origin_request"
      | "missing_csrf_header"
    >

const authorizationBy = (
  holder: Effect.Effect<KeyHolder["Service"], HolderRefused, HttpServerRequest.HttpServerRequest>
) =>
  KeyAuthorization.of({
    gatewayKey: (httpEffect) => Effect.flatMap(holder, (known) => Effect.provideService(httpEffect, KeyHolder, known))
  })

/** Reads the gateway key from `Authorization` or `x-api-key`. The proxy listener may be configured to use another header. */
const authenticatePresented = (keys: PresentedKeys["Service"]) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) =>
    Effect.gen(function* () {
      const key = yield* presentedKey(headers)
      return { ...(yield* keys.authenticate(key)), secret: Effect.succeedSome(key) }
    })
  )

/** A request with two different keys is refused, because either of them could be meant. */
const presentedKey = Effect.fnUntraced(function* (headers: Headers.Headers) {
  const { authorization, "x-api-key": apiKey } = headers
  if (apiKey === undefined) return yield* bearerToken(authorization, Secret.keyPrefix)
  const key = yield* bearerToken(`Bearer ${apiKey}`, Secret.keyPrefix)
  if (authorization === undefined) return key
  const bearer = yield* bearerToken(authorization, Secret.keyPrefix)
  return Redacted.value(bearer) === Redacted.value(key) ? key : yield* twoKeys
})

const twoKeys = new ControlError(
  "malformed_authorization",
  "Authorization and x-api-key have different keys. Send one of them."
)

const noKey = new ControlError(
  "invalid_session",
  "The session is that of an operator token, and this path needs one of a gateway key. Sign in with the key."
)

const keyRows = storedRows(
  Schema.Struct({ ...StoredKeys.fields, ...StoredKeys.secretField, is_idle: Schema.Boolean }),
  {
    table: "api_keys",
    key: ["id"]
  }
)

const toControlError = ({ code, message }: KeyRefusal) =>
  code === "control_state_unavailable"
    ? new ControlError("store_unavailable", message)
    : new ControlError(code, message)
