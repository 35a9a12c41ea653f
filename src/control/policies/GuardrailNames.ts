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
import { secretMember } from "../store/SecretNames.ts"

/**
 * The guardrail policy that `patch` makes of `held`: `null` clears it, absent keeps it. Every guardrail that the patch
 * names must be in the catalogue, and what is forbidden has nothing to override.
 */
export const guardrailsOf = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  held: GuardrailPolicy,
  patch: GuardrailPolicyPatch | null | undefined
) {
  if (patch === undefined) return held
  if (patch === null) return neutral
  const named = names(patch)
  const known =
    named.length === 0
      ? []
      : yield* sql<{ readonly name: string }>`SELECT name FROM guardrail_definitions WHERE ${sql.in("name", named)}`
  const unknown = named.find((name) => !known.some((one) => one.name === name))
  if (unknown !== undefined) return yield* refused(`There is no guardrail ${unknown} in the catalogue.`)
  const secret = secretMember(patch.guardrail_config_overrides ?? {})
  if (secret !== undefined) {
    return yield* refused(
      `guardrail_config_overrides.${secret} looks like a secret, and would be shown by the configuration and the audit log: give the guardrail its bearer_token in the catalogue, or call the member otherwise if it is none.`
    )
  }
  const policy = patched(held, patch)
  const idle = Object.keys(policy.guardrail_config_overrides).find((name) => policy.forbidden_guardrails.includes(name))
  if (idle !== undefined) {
    const message = `The guardrail ${idle} is forbidden here, so there is nothing to override: drop one of the two.`
    return yield* new ControlError("guardrail_forbidden", message, { param: "guardrail_policy" })
  }
  return policy
})

const refused = (message: string) =>
  new ControlError("invalid_guardrail_request", message, { param: "guardrail_policy" })
