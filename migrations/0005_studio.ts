import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // The stored connection replaces the environment's completely: an address without a token means no token.
  `CREATE TABLE studio_connection_settings (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    base_url text NOT NULL CHECK (base_url ~ '^https?://'),
    sealed_token text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
  )`,

  // The whole registry after an activation, without credentials. A rollback restores it.
  `CREATE TABLE service_registry_snapshots (
    version bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    source text NOT NULL,
    diff jsonb NOT NULL,
    services_json jsonb NOT NULL,
    activated_at timestamptz NOT NULL DEFAULT now(),
    rolled_back_from_version bigint,
    created_at timestamptz NOT NULL DEFAULT now()
  )`,

  // Links follow when the studio renames a service.
  ...["project_service_links", "key_service_links"].map(
    (table) => `ALTER TABLE ${table} DROP CONSTRAINT ${table}_service_name_fkey,
      ADD CONSTRAINT ${table}_service_name_fkey FOREIGN KEY (service_name) REFERENCES service_registrations
      ON UPDATE CASCADE ON DELETE CASCADE`
  )
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
