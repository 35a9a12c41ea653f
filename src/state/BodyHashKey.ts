import { Effect, type Redacted, Schema } from "effect"
import { Database } from "../services/Database.ts"
import { Vault } from "./Vault.ts"

/** The installation's own: without it nobody can try which body has a certain hash. */
export type BodyHashKey = Redacted.Redacted<Buffer>

const Salts = Schema.Array(Schema.Struct({ salt: Schema.String }))

/** The same in all processes of an installation. A change of GATEWAY_ENCRYPTION_KEY changes it. */
export const load = Effect.gen(function* () {
  const { sql } = yield* Database
  const { derive } = yield* Vault
  const rows = yield* sql`SELECT salt FROM body_hash_salt`
  const [row] = Schema.decodeUnknownSync(Salts)(rows)
  return derive(Buffer.from(row?.salt ?? "", "hex"), "body hashes")
})
