import { Effect, Layer, Option, Redacted, Schema } from "effect"
import { HttpServerRequest } from "effect/http"
import { GuardrailPolicyPatch, of } from "../gateway/model/GuardrailPolicy.ts"
import * as Secret from "../gateway/model/Secret.ts"
import { Database } from "../services/Database.ts"
import { bearer } from "./Authentication.ts"
import { ControlError } from "./api/Errors.ts"
import { KeyAuthorization, KeyHolder } from "./api/Security.ts"
import { rows, settled } from "./Store.ts"

/** Authenticates the holder of a gateway key: always by `Authorization`, whatever else the proxy listener takes. */
export const layer: Layer.Layer<KeyAuthorization, never, Database> = Layer.effect(
  KeyAuthorization,
  Effect.gen(function* () {
    const { sql } = yield* Database

    const holder = Effect.gen(function* () {
      const { headers } = yield* HttpServerRequest.HttpServerRequest
      const raw = yield* bearer(headers["authorization"], Secret.keyPrefix)
      if (Secret.mistyped(Redacted.value(raw))) return yield* refusal("invalid_virtual_key")
      const digest = Secret.digest(raw)
      const found = yield* settled(
        keys.first(sql`
          SELECT id, project_id, team_id, guardrail_policy,
            coalesce(last_used_at < now() - interval '1 minute', true) AS unnoted,
            CASE WHEN revoked_at IS NOT NULL THEN 'revoked_virtual_key' WHEN disabled THEN 'disabled_virtual_key'
              WHEN expires_at <= now() THEN 'expired_virtual_key' END AS unusable
          FROM api_keys WHERE key_hash = ${digest} OR (previous_key_hash = ${digest} AND previous_key_expires_at > now())`)
      )
      if (found === undefined) return yield* refusal("invalid_virtual_key")
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
    unusable: Schema.NullOr(Schema.Literals(["revoked_virtual_key", "disabled_virtual_key", "expired_virtual_key"]))
  })
)

const messages = {
  invalid_virtual_key: "The gateway key is not known.",
  disabled_virtual_key: "The gateway key is disabled; an operator can enable it.",
  revoked_virtual_key: "The gateway key was revoked; ask for a new one.",
  expired_virtual_key: "The gateway key has expired; ask for a new one."
} as const

const refusal = <Code extends keyof typeof messages>(code: Code): ControlError<Code> =>
  new ControlError(code, messages[code])
