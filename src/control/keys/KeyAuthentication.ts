import { randomUUID } from "node:crypto"
import { DateTime, Effect, Layer, Option, Redacted, Schema } from "effect"
import { HttpServerRequest } from "effect/http"
import * as EffectivePolicy from "../../policy/EffectivePolicy.ts"
import { GuardrailPolicyPatch, of } from "../../policy/GuardrailPolicy.ts"
import { overdue, refusals, rotated } from "../../policy/KeyState.ts"
import { Database } from "../../services/Database.ts"
import * as Secret from "../../state/Secret.ts"
import { retire } from "../../state/UnusedKeys.ts"
import { ControlError, RequestId } from "../api/schema/Errors.ts"
import { KeyAuthorization, KeyHolder } from "../api/schema/Security.ts"
import { bearer } from "../operators/Authentication.ts"
import * as PolicyState from "../policies/PolicyState.ts"
import { rows, settled } from "../store/Store.ts"

/** Authenticates the holder of a gateway key: always by `Authorization`, whatever else the proxy listener takes. */
export const layer: Layer.Layer<KeyAuthorization, never, Database> = Layer.effect(
  KeyAuthorization,
  Effect.gen(function* () {
    const database = yield* Database
    const { sql } = database
    const state = PolicyState.make(sql)

    const find = (digest: Uint8Array) =>
      settled(
        keys.first(sql`
          SELECT id, project_id, team_id, guardrail_policy,
            coalesce(last_used_at < now() - interval '1 minute', true) AS unnoted,
            CASE WHEN key_hash <> ${digest} THEN (extract(epoch FROM previous_key_expires_at) * 1000)::float8 END AS secret_ends_at,
            CASE WHEN key_hash <> ${digest} AND previous_key_expires_at <= now() THEN 'invalid_virtual_key'
              WHEN revoked_at IS NOT NULL THEN 'revoked_virtual_key' WHEN disabled THEN 'disabled_virtual_key'
              WHEN expires_at <= now() THEN 'expired_virtual_key' END AS unusable
          FROM api_keys WHERE key_hash = ${digest} OR (previous_key_hash = ${digest} AND previous_key_expires_at IS NOT NULL)`)
      )

    /** Disables a key that was not used for too long, as the gateway does: this use must not renew it. */
    const retired = Effect.fnUntraced(function* (id: string) {
      const key = yield* state.key(id)
      if (key === undefined) return false
      if (!key.state.readable) {
        return yield* new ControlError("store_unavailable", refusals.control_state_unavailable)
      }
      const layers = yield* state.layersOver(key)
      const { policy } = EffectivePolicy.of([...layers, key.own])
      const days = overdue(key.state, policy, DateTime.toEpochMillis(yield* DateTime.now))
      if (days === undefined) return false
      const requestId = Option.getOrElse(yield* Effect.serviceOption(RequestId), randomUUID)
      yield* Effect.provideService(retire(id, days, requestId), Database, database)
      return true
    }, settled)

    const holder = Effect.gen(function* () {
      const { headers } = yield* HttpServerRequest.HttpServerRequest
      const raw = yield* bearer(headers["authorization"], Secret.keyPrefix)
      if (Secret.mistyped(Redacted.value(raw))) return yield* refusal("invalid_virtual_key")
      const digest = Secret.digest(raw)
      const known = yield* find(digest)
      const found =
        known?.unnoted && known.unusable === null && (yield* retired(known.id)) ? yield* find(digest) : known
      if (found === undefined) return yield* refusal("invalid_virtual_key")
      if (found.unusable === "invalid_virtual_key" && found.secret_ends_at !== null) {
        return yield* new ControlError("invalid_virtual_key", rotated(found.secret_ends_at))
      }
      if (found.unusable !== null) return yield* refusal(found.unusable)
      if (found.unnoted) yield* Effect.ignore(sql`UPDATE api_keys SET last_used_at = now() WHERE id = ${found.id}`)
      return KeyHolder.of({
        keyId: found.id,
        projectId: Option.fromNullOr(found.project_id),
        teamId: Option.fromNullOr(found.team_id),
        guardrails: of(found.guardrail_policy)
      })
    })

    return KeyAuthorization.of({
      gatewayKey: (httpEffect) => Effect.flatMap(holder, (known) => Effect.provideService(httpEffect, KeyHolder, known))
    })
  })
)

const keys = rows(
  Schema.Struct({
    id: Schema.String,
    project_id: Schema.NullOr(Schema.String),
    team_id: Schema.NullOr(Schema.String),
    guardrail_policy: GuardrailPolicyPatch,
    unnoted: Schema.Boolean,
    secret_ends_at: Schema.NullOr(Schema.Finite),
    unusable: Schema.NullOr(
      Schema.Literals(["invalid_virtual_key", "revoked_virtual_key", "disabled_virtual_key", "expired_virtual_key"])
    )
  }),
  { table: "api_keys", key: ["id"] }
)

const refusal = <Code extends Exclude<keyof typeof refusals, "control_state_unavailable">>(
  code: Code
): ControlError<Code> => new ControlError(code, refusals[code])
