import { assert, describe, layer as describeWith, it } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import migration from "../../../migrations/0014_credential_origins.ts"
import * as CredentialOrigin from "../../../src/control/store/CredentialOrigin.ts"
import { Database } from "../../../src/services/Database.ts"
import * as EmbeddedDatabase from "../../EmbeddedDatabase.ts"
import { admin, call, layer, ok } from "../Listener.ts"

const before = { configured: true, address: "https://a.example", origin: "https://a.example" }

describe("A stored credential", () => {
  it.each([
    ["https://a.example", true],
    ["HTTPS://A.Example:443/", true],
    ["https://a.example/another/path?query", true],
    ["http://a.example", false],
    ["https://a.example:8443", false],
    ["https://a.example.", false],
    ["https://b.a.example", false],
    ["https://a.example@evil.example", false],
    ["https://evil.example/https://a.example", false]
  ])("follows its row to %s: %s", (address, kept) => {
    const { cleared, stored } = CredentialOrigin.outcomeOf({ before, address, sealed: undefined })
    assert.deepStrictEqual([cleared, stored === undefined], [!kept, kept])
  })

  it("that was stored without an address goes to none", () => {
    const unaddressed = { configured: true, address: null, origin: null }
    const change = { before: unaddressed, address: "https://a.example", sealed: undefined }
    assert.isTrue(CredentialOrigin.outcomeOf(change).cleared)
  })

  it("that comes with the address belongs to it", () => {
    assert.deepStrictEqual(CredentialOrigin.outcomeOf({ before, address: "http://B.example:80", sealed: "s" }), {
      stored: { sealed: "s", credential_origin: "http://b.example" },
      cleared: false
    })
  })
})

describeWith(EmbeddedDatabase.layer)("The migration", (it) => {
  it.effect("binds what is stored already to the present address", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const tables = [
        "provider_configs",
        "service_registrations",
        "studio_connection_settings",
        "guardrail_definitions"
      ]
      for (const table of [...tables, "upstream_credential_mappings"]) {
        yield* sql`ALTER TABLE ${sql(table)} DROP COLUMN credential_origin`
      }
      yield* sql`INSERT INTO provider_configs (provider, name, base_url, sealed_credential)
        VALUES ('upstream', 'main', 'https://Main.example:443/v1', 'clear.s')`
      yield* sql`INSERT INTO service_registrations (name, route_pattern, upstream_base_url, sealed_credential)
        VALUES ('bound', '/services/bound/*', 'http://bound.example', 'clear.s'), ('nowhere', '/services/nowhere/*', NULL, 'clear.s')`
      yield* sql`INSERT INTO studio_connection_settings (base_url, sealed_token) VALUES ('https://studio.example/base', 'clear.s')`
      yield* sql`INSERT INTO projects (id, name) VALUES ('00000000-0000-4000-8000-000000000000', 'p')`
      yield* sql`INSERT INTO upstream_credential_mappings (scope, project_id, sealed_credential)
        VALUES ('project', '00000000-0000-4000-8000-000000000000', 'clear.s')`
      yield* Effect.provideService(migration, SqlClient.SqlClient, sql)
      const found = yield* sql`SELECT credential_origin FROM provider_configs
        UNION ALL SELECT credential_origin FROM service_registrations
        UNION ALL SELECT credential_origin FROM studio_connection_settings
        UNION ALL SELECT credential_origin FROM upstream_credential_mappings`
      assert.sameMembers(
        found.map((row) => row["credential_origin"]),
        ["https://main.example", "http://bound.example", null, "https://studio.example", "https://main.example"]
      )
    })
  )
})

describeWith(layer(EmbeddedDatabase.layer), { excludeTestServices: true })("An answer", (it) => {
  it.effect("and its audit event say that a credential was removed", () =>
    Effect.gen(function* () {
      const path = `${admin}/services/moving`
      yield* ok("POST", `${admin}/services`, {
        body: { name: "moving", upstream_base_url: "https://a.example", credential: "svc-secret" }
      })
      assert.notProperty(
        yield* ok("PATCH", path, { body: { upstream_base_url: "https://A.example:443" } }),
        "credential_cleared"
      )
      const moved = yield* ok("PATCH", path, { body: { upstream_base_url: "https://b.example" } })
      assert.deepInclude(moved, { credential_cleared: true, credential_configured: false })
      assert.notProperty(yield* ok("GET", path), "credential_cleared")
      const events = yield* call("GET", `${admin}/audit-events?target_type=service&target_id=moving`)
      assert.match(events.text, /"credential_cleared":true/)
    })
  )
})
