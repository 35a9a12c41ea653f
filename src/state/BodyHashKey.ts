import { Effect, type Redacted, Schema } from "effect"
import { Database } from "../services/Database.ts"
import { Vault } from "./Vault.ts"

/** The secret key of body hashes. Without the key, nobody can find out which body has a given hash. */
export type BodyHashKey = Redacted.Redacted<Buffer>

const Salts = Schema.Array(Schema.Struct({ salt: Schema.String }))

/** All processes of an installation derive the same key. The key changes when GATEWAY_ENCRYPTION_KEY changes. */
export const load = Effect.gen(function* () {
  const { sql } = yield* Database
  const { derive } = yield* Vault
  const rows = yield* sql`SELECT salt FROM body_hash_salt`
  const [row] = Schema.decodeUnknownSync(Salts)(rows)
  return derive(Buffer.from(row?.salt ?? "", "hex"), "body hashes")
})
