import { Effect } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import { allow, maxListed } from "../../policy/AllowList.ts"
import { neutral, patched } from "../../policy/KeyPolicy.ts"
import { allowsModel } from "../../policy/ModelPattern.ts"
import * as StoredPolicies from "../../policy/StoredPolicies.ts"
import { ControlError } from "../api/schema/Errors.ts"
import { columnsOf, keyRows } from "./KeyRows.ts"

/**
 * Adds a model to those that the key's own policy allows, unless it allows the model already. Fails if the list is full.
 * Returns the lists before and after. `write` comes from `Audit.mutate`.
 */
export const allowModel = Effect.fnUntraced(function* (write: SqlClient, keyId: string, model: string) {
  const key = yield* keyRows.only(write`SELECT ${columnsOf(write)} FROM api_keys WHERE id = ${keyId} FOR UPDATE`)
  const own = patched(neutral, key.policy)
  const before = own.allowed_models
  if (before._tag === "AllowAll" || allowsModel(before, model)) return { before, after: before }
  if (before.values.length >= maxListed) return yield* tooMany
  const after = allow([...before.values, model])
  yield* write`UPDATE api_keys SET policy = ${StoredPolicies.encode({ ...own, allowed_models: after })}::jsonb,
    policy_version = ${key.policy_version + 1}, updated_at = now() WHERE id = ${keyId}`
  return { before, after }
})

const tooMany = new ControlError(
  "invalid_policy_payload",
  `The key's own policy lists ${maxListed} models, which is the maximum. Replace some of them with a pattern first.`
)
