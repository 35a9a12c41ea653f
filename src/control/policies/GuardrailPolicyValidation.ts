import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import {
  type GuardrailPolicy,
  type GuardrailPolicyPatch,
  names,
  neutral,
  patched
} from "../../policy/GuardrailPolicy.ts"
import { ControlError } from "../api/schema/Errors.ts"
import { findSecretMember } from "../store/SecretNames.ts"

/**
 * The guardrail policy that `patch` makes of `held`: `null` clears it, absent keeps it. Every guardrail that the patch
 * names must be in the catalogue, and what is forbidden has nothing to override.
 */
export const patchedGuardrailPolicy = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  current: GuardrailPolicy,
  patch: GuardrailPolicyPatch | null | undefined
) {
  if (patch === undefined) return current
  if (patch === null) return neutral
  const named = names(patch)
  const known =
    named.length === 0
      ? []
      : yield* sql<{ readonly name: string }>`SELECT name FROM guardrail_definitions WHERE ${sql.in("name", named)}`
  const unknown = named.find((name) => !known.some((row) => row.name === name))
  if (unknown !== undefined) return yield* invalidGuardrail(`There is no guardrail ${unknown} in the catalogue.`)
  const secret = findSecretMember(patch.guardrail_config_overrides ?? {})
  if (secret !== undefined) {
    return yield* invalidGuardrail(
      `guardrail_config_overrides.${secret} looks like a secret, and would be shown by the configuration and the audit log: give the guardrail its bearer_token in the catalogue, or call the member otherwise if it is none.`
    )
  }
  const policy = patched(current, patch)
  const forbiddenOverride = Object.keys(policy.guardrail_config_overrides).find((name) =>
    policy.forbidden_guardrails.includes(name)
  )
  if (forbiddenOverride !== undefined) {
    const message = `The guardrail ${forbiddenOverride} is forbidden here, so there is nothing to override: drop one of the two.`
    return yield* new ControlError("guardrail_forbidden", message, { param: "guardrail_policy" })
  }
  return policy
})

const invalidGuardrail = (message: string) =>
  new ControlError("invalid_guardrail_request", message, { param: "guardrail_policy" })
