import { Effect, type Redacted, Schema } from "effect"
import { Database } from "../services/Database.ts"
import { Vault } from "./Vault.ts"

/** A secret of the installation. Without it nobody can test which body has a given hash. */
export type BodyHashKey = Redacted.Redacted<Buffer>

const Salts = Schema.Array(Schema.Struct({ salt: Schema.String }))

/** All processes of an installation derive the same key. It changes with GATEWAY_ENCRYPTION_KEY. */
export const load = Effect.gen(function* () {
  const { sql } = yield* Database
  const { derive } = yield* Vault
  const rows = yield* sql`SELECT salt FROM body_hash_salt`
  const [row] = Schema.decodeUnknownSync(Salts)(rows)
  return derive(Buffer.from(row?.salt ?? "", "hex"), "body hashes")
})
