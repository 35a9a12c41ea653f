import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const statements = [
  // One row, seeded with the defaults that hold until an operator changes them.
  `CREATE TABLE upstream_passthrough_settings (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    enabled boolean NOT NULL DEFAULT false,
    allowed_paths text[] NOT NULL DEFAULT '{/v1/*}' CHECK (cardinality(allowed_paths) BETWEEN 1 AND 64),
    allowed_methods text[] NOT NULL DEFAULT '{GET,POST}' CHECK (cardinality(allowed_methods) BETWEEN 1 AND 16),
    ui_exposure text NOT NULL DEFAULT 'disabled'
      CHECK (ui_exposure IN ('disabled', 'operator_only', 'explicitly_exposed', 'trusted_ingress')),
    admin_api_exposure text NOT NULL DEFAULT 'disabled'
      CHECK (admin_api_exposure IN ('disabled', 'operator_only', 'explicitly_exposed')),
    timeout_ms integer NOT NULL DEFAULT 120000 CHECK (timeout_ms BETWEEN 1 AND 600000),
    max_request_body_bytes integer NOT NULL DEFAULT 1048576 CHECK (max_request_body_bytes BETWEEN 1 AND 104857600),
    max_response_body_bytes integer NOT NULL DEFAULT 1048576 CHECK (max_response_body_bytes BETWEEN 1 AND 104857600),
    updated_at timestamptz NOT NULL DEFAULT now()
  )`,
  `INSERT INTO upstream_passthrough_settings DEFAULT VALUES`
]

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
})
