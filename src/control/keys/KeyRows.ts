import { Schema } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import * as GuardrailPolicy from "../../policy/GuardrailPolicy.ts"
import { KeyPolicyPatch, neutral, patched } from "../../policy/KeyPolicy.ts"
import { Key } from "../api/keys/KeysApi.ts"
import { isUnreadable, type Unreadable } from "../api/schema/Fields.ts"
import { linksOf } from "../services/ServiceLinks.ts"
import { Count, rowTimestamps, storedRows } from "../store/Rows.ts"

const Time = Schema.NullOr(Schema.DateTimeUtcFromDate)

export const KeyRow = Key.pipe(
  Schema.fieldsAssign({
    ...rowTimestamps,
    revoked_at: Time,
    expires_at: Time,
    rotation_due_at: Time,
    previous_key_expires_at: Time,
    last_used_at: Time,
    policy: KeyPolicyPatch,
    policy_version: Count,
    guardrail_policy: GuardrailPolicy.GuardrailPolicyPatch
  })
)
export type KeyRow = typeof KeyRow.Type

export const table = { table: "api_keys", key: ["id"] } as const

export const keyRows = storedRows(KeyRow, table)

export const columnsOf = (sql: SqlClient) =>
  sql`id, name, description, owner_email, tags, owner_type, project_id, team_id, key_prefix, disabled, revoked_at, expires_at,
    rotation_due_at, CASE WHEN previous_key_expires_at > now() THEN previous_key_expires_at END AS previous_key_expires_at,
    last_used_at, holder_rotation, policy, policy_version, guardrail_policy, created_at, updated_at, ${linksOf(sql, "key").names}`

export const toKey = ({ guardrail_policy, policy, policy_version, ...key }: KeyRow): Key => ({
  ...key,
  policy: { ...patched(neutral, policy), policy_version },
  guardrail_policy: GuardrailPolicy.of(guardrail_policy)
})

export const toKeyOrUnreadable = (row: KeyRow | Unreadable) => (isUnreadable(row) ? row : toKey(row))
