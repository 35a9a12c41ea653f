import { Effect, Option, type Redacted } from "effect"
import { Database } from "../../src/services/Database.ts"
import { keyId } from "../../src/state/Vault.ts"

const program = "svc-runtime"

interface EncryptionKeys {
  readonly encryptionKey: Option.Option<Redacted.Redacted<Uint8Array>>
  readonly previousEncryptionKey: Option.Option<Redacted.Redacted<Uint8Array>>
}

/**
 * The `application_name` of this process's database sessions, with the ids of its encryption keys. `secrets rotate`
 * reads these ids to find processes that could not decrypt new secrets. PostgreSQL keeps up to 63 bytes of a name.
 */
export const of = ({ encryptionKey, previousEncryptionKey }: EncryptionKeys): string =>
  `${program} keys=${[encryptionKey, previousEncryptionKey].flatMap(Option.toArray).map(keyId).join(",")}`

/** Counts the database sessions of processes that do not report the encryption key `id`. */
export const countWithoutKey = Effect.fnUntraced(function* (id: string) {
  const { sql } = yield* Database
  const [found] = yield* sql<{ sessions: number }>`
    SELECT count(*)::integer AS sessions FROM pg_stat_activity
    WHERE datname = current_database() AND split_part(application_name, ' ', 1) = ${program}
      AND NOT coalesce(${id} = ANY(string_to_array(substring(application_name FROM 'keys=([0-9a-f,]*)'), ',')), false)`
  return found?.sessions ?? 0
})
