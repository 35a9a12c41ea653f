import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { Database } from "../../src/services/Database.ts"
import { eventually } from "../Eventually.ts"
import * as NewerRows from "../NewerRows.ts"
import * as RealTime from "../RealTime.ts"
import * as Proxy from "./Proxy.ts"
import type { RecordingWire } from "./RecordingWire.ts"

const written = (...statements: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const { sql } = yield* Database
    yield* sql.unsafe(NewerRows.unconstrained)
    yield* sql`DELETE FROM policy_layers`
    yield* sql`DELETE FROM canonical_routes WHERE route_id = 'rerank'`
    yield* sql`DELETE FROM service_registrations`
    yield* sql`DELETE FROM provider_configs`
    yield* sql`UPDATE canonical_routes SET mode = 'managed_by_gateway'`
    yield* sql`DELETE FROM guardrail_definitions WHERE name LIKE 'newer%'`
    yield* Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
  })

/** A gateway that starts on what a newer version wrote. */
const beside = (...statements: ReadonlyArray<string>) => Proxy.make({ configured: written(...statements) })

const body = { model: "m", messages: [{ role: "user", content: "hello" }] }
const embedding = { model: "m", input: "hello" }

const answerOf = ({ status, text }: RecordingWire): ReadonlyArray<unknown> => {
  const { error } = JSON.parse(text)
  return [status, error?.code]
}

const inTeam = (teamId: string) =>
  Effect.gen(function* () {
    const { sql } = yield* Database
    const key = yield* Proxy.issueKey()
    yield* sql`UPDATE api_keys SET team_id = ${teamId} WHERE id = ${key.id}`
    return key
  })

layer(Proxy.database)("A row that this version cannot decode", (it) => {
  it.effect("whatever a newer version wrote, the gateway starts, and serves what it is not about", () =>
    Effect.gen(function* () {
      const { provider: _, ...others } = NewerRows.statements
      const gateway = yield* beside(...Object.values(others))
      const { headers } = yield* Proxy.issueKey()
      assert.strictEqual((yield* gateway.ask({ target: Proxy.chat, headers, body })).status, 200)
      assert.strictEqual(new URL(gateway.sent[0]?.origin ?? "").host, "upstream.test")
    })
  )

  it.effect("a provider refuses what would go there, and nothing goes to UPSTREAM_BASE_URL in its place", () =>
    Effect.gen(function* () {
      const gateway = yield* beside(
        NewerRows.statements.provider,
        `INSERT INTO service_registrations (name, route_pattern, upstream_base_url, enabled, sealed_credential, credential_origin)
          VALUES ('there', '/internal/there/*', 'https://there.test', true, 'clear.secret', 'https://there.test')`,
        `UPDATE canonical_routes SET mode = 'direct_upstream_passthrough' WHERE route_id = 'embeddings'`,
        `UPDATE upstream_passthrough_settings SET enabled = true, allowed_paths = '{/v1/other,/internal/*}'`
      )
      const { headers } = yield* Proxy.issueKey()
      const refused = [500, "invalid_configuration"]
      assert.deepStrictEqual(answerOf(yield* gateway.ask({ target: Proxy.chat, headers, body })), refused)
      assert.deepStrictEqual(
        answerOf(yield* gateway.ask({ target: "/v1/other", method: "POST", headers, body })),
        refused
      )
      const direct = { target: "/v1/embeddings", headers: ["authorization", "Bearer of-the-client"], body: embedding }
      assert.deepStrictEqual(answerOf(yield* gateway.ask(direct)), refused)
      assert.lengthOf(gateway.sent, 0)
      const there = { target: "/internal/there/x", method: "POST", headers, body: {} }
      assert.strictEqual((yield* gateway.ask(there)).status, 200)
      assert.strictEqual(new URL(gateway.sent[0]?.origin ?? "").host, "there.test")
    })
  )

  it.effect("a layer denies whoever is under it, and the record names it", () =>
    Effect.gen(function* () {
      const { layerField, layerValue } = NewerRows.statements
      const gateway = yield* beside(layerField, layerValue)
      for (const team of ["newer-field", "newer-value"]) {
        const { headers } = yield* inTeam(team)
        const wire = yield* gateway.ask({ target: Proxy.chat, headers, body })
        assert.deepStrictEqual(answerOf(wire), [403, "policy_denied"], team)
      }
      const { headers } = yield* inTeam("another")
      assert.strictEqual((yield* gateway.ask({ target: Proxy.chat, headers, body })).status, 200)
      assert.deepStrictEqual(
        (yield* gateway.records).map(({ denial }) => denial),
        [
          { check: "deny", layer: "team:newer-field (unreadable)" },
          { check: "deny", layer: "team:newer-value (unreadable)" },
          null
        ]
      )
    })
  )

  it.effect("a guardrail whose address is none refuses, and the rest of the configuration is loaded", () =>
    Effect.gen(function* () {
      const gateway = yield* beside(
        `INSERT INTO guardrail_definitions (name, description, provider_kind, modes, failure_policy, endpoint_url, default_on, enabled)
          VALUES ('newer', '', 'http', '{pre_call}', 'fail_closed', 'https://[', false, true)`
      )
      const { headers } = yield* Proxy.issueKey()
      assert.strictEqual((yield* gateway.ask({ target: Proxy.chat, headers, body })).status, 200)
    })
  )

  it.effect("a field of a newer version that restricts nothing is no obstacle", () =>
    Effect.gen(function* () {
      const gateway = yield* beside(
        `INSERT INTO policy_layers (layer_kind, policy) VALUES ('global', '{"max_things":null,"shared":{"rpm_limit":null}}')`
      )
      const { headers } = yield* Proxy.issueKey({ max_things: null })
      assert.strictEqual((yield* gateway.ask({ target: Proxy.chat, headers, body })).status, 200)
    })
  )

  it.effect("a layer of a kind that only a newer version knows may be about anybody, so it denies everybody", () =>
    Effect.gen(function* () {
      const gateway = yield* beside(`INSERT INTO policy_layers (layer_kind, scope_id) VALUES ('department', 'sales')`)
      const { headers } = yield* Proxy.issueKey()
      const wire = yield* gateway.ask({ target: Proxy.chat, headers, body })
      assert.deepStrictEqual(answerOf(wire), [403, "policy_denied"])
      assert.deepStrictEqual((yield* gateway.records)[0]?.denial, {
        check: "deny",
        layer: "unknown:department:sales (unreadable)"
      })
    })
  )

  it.effect("a key with such a policy is refused alone, and a revoked one as revoked", () =>
    Effect.gen(function* () {
      const gateway = yield* beside()
      const ask = (policy: { readonly [field: string]: unknown }, revokedAt?: Date) =>
        Effect.flatMap(Proxy.issueKey(policy, revokedAt && { revokedAt }), ({ headers }) =>
          Effect.map(gateway.ask({ target: Proxy.chat, headers, body }), answerOf)
        )
      assert.deepStrictEqual(yield* ask({ max_things: 3 }), [503, "control_state_unavailable"])
      assert.deepStrictEqual(yield* ask({ allowed_routes: ["/v9"] }), [503, "control_state_unavailable"])
      assert.deepStrictEqual(yield* ask({ max_things: 3 }, new Date(0)), [401, "revoked_virtual_key"])
      assert.deepStrictEqual(yield* ask({ rpm_limit: 5 }), [200, undefined])
    })
  )

  it.effect("a route is disabled, and only that one", () =>
    Effect.gen(function* () {
      const gateway = yield* beside(NewerRows.statements.route)
      const { headers } = yield* Proxy.issueKey()
      const wire = yield* gateway.ask({ target: "/v1/embeddings", headers, body: embedding })
      assert.deepStrictEqual(answerOf(wire), [403, "disabled_route"])
      assert.strictEqual((yield* gateway.ask({ target: Proxy.chat, headers, body })).status, 200)
    })
  )

  it.effect("a service is disabled and keeps its path, also where its address is none", () =>
    Effect.gen(function* () {
      const gateway = yield* beside(
        NewerRows.statements.service,
        `INSERT INTO service_registrations (name, route_pattern, upstream_base_url, enabled)
          VALUES ('nowhere', '/internal/nowhere/*', 'http://[', true), ('there', '/internal/there/*', 'https://there.test', true)`,
        `UPDATE service_registrations SET sealed_credential = 'clear.secret', credential_origin = upstream_base_url`,
        `UPDATE upstream_passthrough_settings SET enabled = true, allowed_paths = '{/internal/*}'`
      )
      const { headers } = yield* Proxy.issueKey()
      const ask = (name: string) => gateway.ask({ target: `/internal/${name}/x`, method: "POST", headers, body: {} })
      for (const name of ["newer", "nowhere"]) {
        assert.deepStrictEqual(answerOf(yield* ask(name)), [403, "disabled_service"], name)
      }
      assert.strictEqual((yield* ask("there")).status, 200)
    })
  )

  it.effect("a guardrail is absent; where every request must pass it, requests are refused", () =>
    Effect.gen(function* () {
      const gateway = yield* beside(NewerRows.statements.guardrail)
      const { headers } = yield* Proxy.issueKey()
      assert.strictEqual((yield* gateway.ask({ target: Proxy.chat, headers, body })).status, 200)
      const demanding = yield* Proxy.issueKey({}, { guardrails: { mandatory_guardrails: ["newer"] } })
      const refused = [502, "guardrail_unavailable"]
      const ask = { target: Proxy.chat, headers: demanding.headers, body }
      assert.deepStrictEqual(answerOf(yield* gateway.ask(ask)), refused)
      for (const [failurePolicy, expected] of [
        ["fail_closed", refused],
        ["fail_open", [200, undefined]]
      ] as const) {
        const everybody = yield* beside(
          NewerRows.statements.guardrail,
          `UPDATE guardrail_definitions SET default_on = true, failure_policy = '${failurePolicy}' WHERE name = 'newer'`
        )
        const key = yield* Proxy.issueKey()
        const wire = yield* everybody.ask({ target: Proxy.chat, headers: key.headers, body })
        assert.deepStrictEqual(answerOf(wire), expected, failurePolicy)
      }
    })
  )

  it.effect.each([
    ["newer-mode", NewerRows.statements.streamMode],
    ["newer-window", NewerRows.statements.streamWindow]
  ] as const)("a guardrail that reads streams in a way of a newer version is absent: %s", ([name, statement]) =>
    Effect.gen(function* () {
      const gateway = yield* beside(statement)
      const demanding = yield* Proxy.issueKey({}, { guardrails: { mandatory_guardrails: [name] } })
      const others = yield* Proxy.issueKey()
      const refused = [502, "guardrail_unavailable"]
      for (const stream of [true, false]) {
        const ask = { target: Proxy.chat, body: { ...body, stream } }
        assert.deepStrictEqual(answerOf(yield* gateway.ask({ ...ask, headers: demanding.headers })), refused)
        assert.strictEqual((yield* gateway.ask({ ...ask, headers: others.headers })).status, 200)
      }
      const everybody = yield* beside(
        statement,
        `UPDATE guardrail_definitions SET default_on = true WHERE name = '${name}'`
      )
      const { headers } = yield* Proxy.issueKey()
      assert.deepStrictEqual(answerOf(yield* everybody.ask({ target: Proxy.chat, headers, body })), refused)
    })
  )

  it.effect("a guardrail that an older version stores has the defaults of its stream mode", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      yield* written(
        `INSERT INTO guardrail_definitions (name, description, provider_kind, modes, failure_policy, enabled, endpoint_url)
          VALUES ('newer', '', 'http', '{post_call}', 'fail_closed', true, 'https://older.test')`
      )
      const rows = yield* sql`SELECT stream_mode, window_chars FROM guardrail_definitions WHERE name = 'newer'`
      assert.deepStrictEqual(rows, [{ stream_mode: "buffer", window_chars: 512 }])
    })
  )

  it.effect("the wildcard is closed", () =>
    Effect.gen(function* () {
      const gateway = yield* beside(NewerRows.statements.passthrough)
      const { headers } = yield* Proxy.issueKey()
      const wire = yield* gateway.ask({ target: "/v1/other", headers, body: {} })
      assert.deepStrictEqual(answerOf(wire), [404, "unsupported_route"])
    })
  )

  it.effect("how callers must authenticate is never guessed: everybody is refused, in direct mode too", () =>
    Effect.gen(function* () {
      const { authSettings } = NewerRows.statements
      const gateway = yield* beside(
        authSettings,
        `UPDATE gateway_auth_settings SET svc_key_header = 'X-Own', clock_skew_seconds = 601`,
        `UPDATE canonical_routes SET mode = 'direct_upstream_passthrough' WHERE route_id = 'embeddings'`
      )
      const { headers } = yield* Proxy.issueKey()
      const refused = [503, "control_state_unavailable"]
      assert.deepStrictEqual(answerOf(yield* gateway.ask({ target: Proxy.chat, headers, body })), refused)
      const direct = { target: "/v1/embeddings", headers: ["authorization", "Bearer of-the-client"], body: embedding }
      assert.deepStrictEqual(answerOf(yield* gateway.ask(direct)), refused)
      assert.lengthOf(gateway.sent, 0)
    })
  )

  it.effect("an edit that only a newer version can decode takes nothing else out of force", () =>
    Effect.gen(function* () {
      const gateway = yield* beside()
      const { headers } = yield* Proxy.issueKey()
      const ask = gateway.ask({ target: Proxy.chat, headers, body })
      assert.strictEqual((yield* ask).status, 200)
      yield* written(NewerRows.statements.route)
      yield* Proxy.configureRoute("chat-completions", { enabled: false })
      yield* RealTime.effect(eventually(Effect.map(ask, answerOf), ([status]) => status === 403))
    })
  )
})
