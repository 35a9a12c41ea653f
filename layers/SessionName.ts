import { Effect, Option } from "effect"
import { Database } from "../src/services/Database.ts"
import { keyId } from "../src/state/Vault.ts"
import type { Settings } from "./Environment.ts"

const program = "svc-runtime"

/**
 * The `application_name` of a process's database sessions. It says by their ids which encryption keys the process has,
 * so that a rotation can see who would not read what it seals. PostgreSQL keeps 63 bytes of it; this has 34.
 */
export const of = ({
  encryptionKey,
  previousEncryptionKey
}: Pick<Settings, "encryptionKey" | "previousEncryptionKey">): string =>
  `${program} keys=${[encryptionKey, previousEncryptionKey].flatMap(Option.toArray).map(keyId).join(",")}`

/**
 * How many sessions belong to processes that do not have the encryption key of this id. A process of a version that does
 * not say which keys it has is one of them.
 */
export const countWithoutKey = Effect.fnUntraced(function* (id: string) {
  const { sql } = yield* Database
  const [found] = yield* sql<{ sessions: number }>`
    SELECT count(*)::integer AS sessions FROM pg_stat_activity
    WHERE datname = current_database() AND split_part(application_name, ' ', 1) = ${program}
      AND NOT coalesce(${id} = ANY(string_to_array(substring(application_name FROM 'keys=([0-9a-f,]*)'), ',')), false)`
  return found?.sessions ?? 0
})
