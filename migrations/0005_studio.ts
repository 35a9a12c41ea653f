import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // The stored connection stands for the environment's as a whole: an address without a token is one without a token.
  `CREATE TABLE studio_connection_settings (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    base_url text NOT NULL CHECK (base_url ~ '^https?://'),
    sealed_token text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
  )`,

  // The whole registry as an activation left it, without credentials: what a rollback goes back to.
  `CREATE TABLE service_registry_snapshots (
    version bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    source text NOT NULL,
    diff jsonb NOT NULL,
    services_json jsonb NOT NULL,
    activated_at timestamptz NOT NULL DEFAULT now(),
    rolled_back_from_version bigint,
    created_at timestamptz NOT NULL DEFAULT now()
  )`,

  // The studio may rename a service; its links go with it.
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
