import { Effect, Option } from "effect"
import { Database } from "../src/services/Database.ts"
import { keyId } from "../src/state/Vault.ts"
import type { Settings } from "./Environment.ts"

const program = "svc-runtime"

/**
 * The `application_name` of the process's database sessions. It lists the ids of the encryption keys that the process
 * has, so that `secrets rotate` finds processes that could not read newly sealed values. The name has 34 bytes;
 * PostgreSQL keeps 63.
 */
export const of = ({
  encryptionKey,
  previousEncryptionKey
}: Pick<Settings, "encryptionKey" | "previousEncryptionKey">): string =>
  `${program} keys=${[encryptionKey, previousEncryptionKey].flatMap(Option.toArray).map(keyId).join(",")}`

/**
 * The number of sessions of processes without the encryption key `id`. A process whose version does not list its keys
 * counts as one without.
 */
export const countWithoutKey = Effect.fnUntraced(function* (id: string) {
  const { sql } = yield* Database
  const [found] = yield* sql<{ sessions: number }>`
    SELECT count(*)::integer AS sessions FROM pg_stat_activity
    WHERE datname = current_database() AND split_part(application_name, ' ', 1) = ${program}
      AND NOT coalesce(${id} = ANY(string_to_array(substring(application_name FROM 'keys=([0-9a-f,]*)'), ',')), false)`
  return found?.sessions ?? 0
})
