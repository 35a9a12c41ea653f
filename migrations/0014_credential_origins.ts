import { Effect, Schema } from "effect"
import { SqlClient } from "effect/sql"

const addresses = Schema.Array(Schema.Struct({ address: Schema.String }))

/** A stored credential belongs to the origin for which it was stored. Existing ones get their present origin. */
const tables = [
  { table: "provider_configs", address: "base_url", secret: "sealed_credential" },
  { table: "service_registrations", address: "upstream_base_url", secret: "sealed_credential" },
  { table: "studio_connection_settings", address: "base_url", secret: "sealed_token" },
  { table: "guardrail_definitions", address: "endpoint_url", secret: "sealed_token" }
]

const originOf = (address: string): string | null => (URL.canParse(address) ? new URL(address).origin : null)

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const { address, secret, table } of tables) {
    yield* sql`ALTER TABLE ${sql(table)} ADD COLUMN credential_origin text`
    const held = yield* Effect.flatMap(
      sql`SELECT DISTINCT ${sql(address)} AS address FROM ${sql(table)}
        WHERE ${sql(address)} IS NOT NULL AND ${sql(secret)} IS NOT NULL`,
      Schema.decodeUnknownEffect(addresses)
    )
    for (const { address: present } of held) {
      yield* sql`UPDATE ${sql(table)} SET credential_origin = ${originOf(present)}
        WHERE ${sql(address)} = ${present} AND ${sql(secret)} IS NOT NULL`
    }
  }
  // Without an enabled upstream the origin stays NULL, which means that of UPSTREAM_BASE_URL.
  yield* sql`ALTER TABLE upstream_credential_mappings ADD COLUMN credential_origin text`
  const [upstream] = yield* Effect.flatMap(
    sql`SELECT base_url AS address FROM provider_configs WHERE provider = 'upstream' AND enabled`,
    Schema.decodeUnknownEffect(addresses)
  )
  if (upstream !== undefined) {
    yield* sql`UPDATE upstream_credential_mappings SET credential_origin = ${originOf(upstream.address)}
      WHERE sealed_credential IS NOT NULL`
  }
})
