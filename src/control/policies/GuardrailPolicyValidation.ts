import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { builtIn } from "../../guardrails/Definitions.ts"
import * as PiiRedact from "../../guardrails/PiiRedact.ts"
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
 * Applies `patch` to the guardrail policy `current`. `null` clears the policy. Absent fields keep their values. Fails
 * if the patch names an unknown guardrail, contains a secret, or overrides a guardrail that the policy forbids.
 */
export const patchedGuardrailPolicy = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  current: GuardrailPolicy,
  patch: GuardrailPolicyPatch | null | undefined
) {
  if (patch === undefined) return current
  if (patch === null) return neutral
  const requestedNames = names(patch)
  const knownRows =
    requestedNames.length === 0
      ? []
      : yield* sql<{
          readonly name: string
        }>`SELECT name FROM guardrail_definitions WHERE ${sql.in("name", requestedNames)}`
  const unknown = requestedNames.find((name) => !knownRows.some((row) => row.name === name))
  if (unknown !== undefined)
    return yield* invalidGuardrail(
      `There is no guardrail ${unknown} in the catalogue. Create it first, or correct its name.`
    )
  const secret = findSecretMember(patch.guardrail_config_overrides ?? {})
  if (secret !== undefined) {
    return yield* invalidGuardrail(
      `guardrail_config_overrides.${secret} looks like a secret. The configuration and the audit log would show it. Set the guardrail's bearer_token in the catalogue instead, or rename the member if it is not a secret.`
    )
  }
  const override = patch.guardrail_config_overrides?.[builtIn]
  const mistake = override && PiiRedact.mistakeIn(override)
  if (mistake !== undefined) {
    return yield* invalidGuardrail(`guardrail_config_overrides.${builtIn}.${mistake.field} ${mistake.reason}.`)
  }
  const policy = patched(current, patch)
  const forbiddenOverride = Object.keys(policy.guardrail_config_overrides).find((name) =>
    policy.forbidden_guardrails.includes(name)
  )
  if (forbiddenOverride !== undefined) {
    const message = `The guardrail ${forbiddenOverride} is both forbidden and overridden: remove it from forbidden_guardrails or from guardrail_config_overrides.`
    return yield* new ControlError("guardrail_forbidden", message, { param: "guardrail_policy" })
  }
  return policy
})

const invalidGuardrail = (message: string) =>
  new ControlError("invalid_guardrail_request", message, { param: "guardrail_policy" })
