import { Effect } from "effect"
import type { GuardrailPolicyPatch } from "../../src/policy/GuardrailPolicy.ts"
import { Database } from "../../src/services/Database.ts"
import { admin, at, type Call, idOf, ok } from "./Listener.ts"

export const guardrails = `${admin}/guardrails`
/** The endpoints for the holder of a key. */
export const mine = "/admin-ui/v1/guardrails"

export interface Holder {
  readonly id: string
  readonly raw: string
}

export const as = ({ raw }: Holder): Call => ({ authorization: `Bearer ${raw}` })

/** A key with this guardrail policy. */
export const keyWith = Effect.fnUntraced(function* (policy: GuardrailPolicyPatch) {
  const { sql } = yield* Database
  const minted = yield* ok("POST", `${admin}/keys`, { body: { owner_type: "individual" } })
  const holder: Holder = { id: idOf(minted, "key"), raw: String(at(minted, "raw_key")) }
  yield* sql`UPDATE api_keys SET guardrail_policy = ${JSON.stringify(policy)}::jsonb WHERE id = ${holder.id}`
  return holder
})

export type Json = Parameters<typeof at>[0]

export const listAt = (json: Json, field: string): ReadonlyArray<Json> => {
  const list = at(json, field)
  return Array.isArray(list) ? list : []
}
export const entriesOf = (json: Json) => listAt(json, "guardrails")
