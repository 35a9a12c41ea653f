import { readdirSync, readFileSync } from "node:fs"
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { HttpApi } from "effect/http-api"
import { ControlApi } from "../../../src/control/api/ControlApi.ts"
import { Database } from "../../../src/services/Database.ts"
import * as Changes from "../../../src/state/Changes.ts"
import * as Fixtures from "../Fixtures.ts"
import { admin, at, call, idOf, ok, operatorToken, suite } from "../Listener.ts"
import * as StudioServer from "../StudioServer.ts"

const nobody = "00000000-0000-4000-8000-000000000000"

interface Mutation {
  readonly path: string
  readonly body?: object
}

interface Scenario<E, R> {
  readonly action: string
  readonly target: string
  /** What gateways are told. */
  readonly notice: Changes.Change["_tag"] | undefined
  readonly works: Effect.Effect<Mutation, E, R>
  readonly fails: Effect.Effect<Mutation, E, R>
}

const scenario = <E, R>(
  action: string,
  target: string,
  notice: Scenario<E, R>["notice"],
  works: Scenario<E, R>["works"],
  fails: Mutation
) => ({ action, target, notice, works, fails: Effect.succeed(fails) })

const keyAction = (verb: string) =>
  scenario(
    `keys:${verb}`,
    "key",
    "Key",
    Effect.map(Fixtures.key, (id) => ({ path: `${admin}/keys/${id}/${verb}` })),
    { path: `${admin}/keys/${nobody}/${verb}` }
  )

const tokenAction = (verb: string) =>
  scenario(
    `operators:${verb}`,
    "operator_token",
    undefined,
    Effect.map(Fixtures.token, (id) => ({ path: `${admin}/operator-tokens/${id}/${verb}` })),
    { path: `${admin}/operator-tokens/${nobody}/${verb}` }
  )

const providerAction = (verb: string) =>
  scenario(
    `providers:${verb}`,
    "provider",
    "Configuration",
    Effect.map(Fixtures.provider, (id) => ({ path: `${admin}/providers/${id}/${verb}` })),
    { path: `${admin}/providers/${nobody}/${verb}` }
  )

const mappingAction = (verb: string) =>
  scenario(
    `upstream_credentials:${verb}`,
    "upstream_credential_mapping",
    "Key",
    Effect.map(Fixtures.mapping, (id) => ({ path: `${admin}/providers/upstream-credentials/${id}/${verb}` })),
    { path: `${admin}/providers/upstream-credentials/${nobody}/${verb}` }
  )

/** The other scenarios' rows lead out of this machine. */
const nothingToAsk = Effect.gen(function* () {
  const { sql } = yield* Database
  yield* sql`UPDATE provider_configs SET enabled = false`
  yield* sql`UPDATE service_registrations SET enabled = false`
})

const serviceAction = (verb: string) =>
  scenario(
    `services:${verb}`,
    "service",
    "Configuration",
    Effect.map(Fixtures.service, (name) => ({ path: `${admin}/services/${name}/${verb}` })),
    { path: `${admin}/services/nothing/${verb}` }
  )

const imported = { studio_service_id: "audited", name: "audited-import" }

const importAction = (word: string) =>
  scenario(
    `services:${word}`,
    "service",
    "Configuration",
    Effect.succeed({ path: `${admin}/services/${word}`, body: imported }),
    { path: `${admin}/services/${word}`, body: { ...imported, name: "Not A Label" } }
  )

/** A service that describes itself, and the hash of what it says. */
const documented = Effect.gen(function* () {
  const { origin } = yield* StudioServer.serve(StudioServer.json({ openapi: "3.0.3", paths: {} }))
  const name = yield* Fixtures.service
  yield* ok("PATCH", `${admin}/services/${name}`, { body: { upstream_base_url: origin } })
  const preview = yield* ok("POST", `${admin}/services/${name}/openapi/preview`, { body: {} })
  return {
    path: `${admin}/services/${name}/openapi/sync`,
    body: { expected_schema_hash: at(preview, "schema_hash") }
  }
})

const route = (family: "a" | "b", id: string) => {
  const on = (action: string, verb: string, body?: object, bad?: object) =>
    scenario(
      `policies:route_${action}`,
      `family_${family}_route`,
      "Configuration",
      Effect.succeed({ path: `${admin}/family-${family}-routes/${id}/${verb}`, ...(body && { body }) }),
      bad === undefined
        ? { path: `${admin}/family-${family}-routes/nothing/${verb}` }
        : { path: `${admin}/family-${family}-routes/${id}/${verb}`, body: bad }
    )
  return {
    enable: on("enable", "enable"),
    disable: on("disable", "disable"),
    mode: on("mode_update", "mode", { mode: "direct_upstream_passthrough" }, { mode: "sideways" }),
    config: on("config_update", "config", { timeout_ms: 1000 }, { timeout_ms: 0 })
  }
}

const a = route("a", "responses")
const b = route("b", "models")
const prices = `${admin}/model-prices/some%2Fmodel`
const price = { input_usd_per_million: 1, output_usd_per_million: 2 }

/** Every mutating endpoint must be in here. */
const scenarios = {
  "projects.create": scenario(
    "projects:create",
    "project",
    undefined,
    Effect.succeed({ path: `${admin}/projects`, body: { name: "audited" } }),
    { path: `${admin}/projects`, body: { name: "audited" } }
  ),
  "projects.update": scenario(
    "projects:update",
    "project",
    "Project",
    Effect.map(Fixtures.project, (id) => ({ path: `${admin}/projects/${id}`, body: { name: "renamed" } })),
    { path: `${admin}/projects/${nobody}`, body: { name: "renamed" } }
  ),
  "projects.remove": scenario(
    "projects:delete",
    "project",
    "Project",
    Effect.map(Fixtures.project, (id) => ({ path: `${admin}/projects/${id}` })),
    { path: `${admin}/projects/${nobody}` }
  ),
  "keys.create": scenario(
    "keys:create",
    "key",
    "Key",
    Effect.succeed({ path: `${admin}/keys`, body: { owner_type: "individual" } }),
    { path: `${admin}/keys`, body: { project_id: nobody } }
  ),
  "keys.update": scenario(
    "keys:update",
    "key",
    "Key",
    Effect.map(Fixtures.key, (id) => ({ path: `${admin}/keys/${id}`, body: { disabled: true } })),
    { path: `${admin}/keys/${nobody}`, body: { disabled: true } }
  ),
  "keys.rotate": scenario(
    "keys:rotate",
    "key",
    "Key",
    Effect.map(Fixtures.key, (id) => ({ path: `${admin}/keys/${id}/rotate`, body: { grace_seconds: 60 } })),
    { path: `${admin}/keys/${nobody}/rotate`, body: {} }
  ),
  "keys.endGrace": scenario(
    "keys:end_grace",
    "key",
    "Key",
    Effect.flatMap(Fixtures.key, (id) =>
      Effect.map(ok("POST", `${admin}/keys/${id}/rotate`, { body: { grace_seconds: 60 } }), () => ({
        path: `${admin}/keys/${id}/end-grace`
      }))
    ),
    { path: `${admin}/keys/${nobody}/end-grace` }
  ),
  "limits.raise": scenario(
    "limits:raise",
    "key",
    "Key",
    Effect.map(Fixtures.limitedKey, (limits) => ({ path: `${limits}/raise`, body: Fixtures.raise })),
    { path: `${admin}/limits/${nobody}/raise`, body: Fixtures.raise }
  ),
  "limits.endRaise": scenario(
    "limits:end_raise",
    "key",
    "Key",
    Effect.flatMap(Fixtures.limitedKey, (limits) =>
      Effect.map(ok("POST", `${limits}/raise`, { body: Fixtures.raise }), (raised) => ({
        path: `${limits}/raises/${idOf(raised)}/end`
      }))
    ),
    { path: `${admin}/limits/${nobody}/raises/${nobody}/end` }
  ),
  "limits.reset": scenario(
    "limits:reset",
    "key",
    undefined,
    Effect.map(
      ok("POST", `${admin}/keys`, { body: { owner_type: "individual", policy: { daily_budget_usd: 5 } } }),
      (json) => ({
        path: `${admin}/limits/reset`,
        body: { scope: "key", scope_id: idOf(json, "key"), meter: "daily_budget_usd", reason: "a demo" }
      })
    ),
    {
      path: `${admin}/limits/reset`,
      body: { scope: "key", scope_id: nobody, meter: "daily_budget_usd", reason: "a demo" }
    }
  ),
  "limits.grantRequest": scenario(
    "limits:grant_raise",
    "key",
    "Key",
    Effect.map(Fixtures.raiseRequest, (id) => ({
      path: `${admin}/limits/raise-requests/${id}/grant`,
      body: Fixtures.raise
    })),
    { path: `${admin}/limits/raise-requests/${nobody}/grant`, body: Fixtures.raise }
  ),
  "limits.grantModel": scenario(
    "limits:grant_model",
    "key",
    "Key",
    Effect.map(Fixtures.modelRequest, (id) => ({ path: `${admin}/limits/raise-requests/${id}/grant-model`, body: {} })),
    { path: `${admin}/limits/raise-requests/${nobody}/grant-model`, body: {} }
  ),
  "limits.refuseRequest": scenario(
    "limits:refuse_raise",
    "key",
    undefined,
    Effect.map(Fixtures.raiseRequest, (id) => ({
      path: `${admin}/limits/raise-requests/${id}/refuse`,
      body: { answer: "not now" }
    })),
    { path: `${admin}/limits/raise-requests/${nobody}/refuse`, body: { answer: "not now" } }
  ),
  "operator-tokens.create": scenario(
    "operators:create",
    "operator_token",
    undefined,
    Effect.succeed({ path: `${admin}/operator-tokens`, body: { name: "reader", scopes: ["usage:read"] } }),
    { path: `${admin}/operator-tokens`, body: { name: "reader", scopes: [] } }
  ),
  "operator-tokens.rotate": tokenAction("rotate"),
  "operator-tokens.revoke": tokenAction("revoke"),
  "keys.revoke": keyAction("revoke"),
  "keys.disable": keyAction("disable"),
  "keys.enable": keyAction("enable"),
  "policy-layers.upsert": scenario(
    "policies:upsert-layer",
    "policy_layer",
    "Configuration",
    Effect.succeed({ path: `${admin}/policy-layers`, body: { kind: "model", scope_id: "m", policy: { deny: true } } }),
    { path: `${admin}/policy-layers`, body: { kind: "model" } }
  ),
  "policy-layers.update": scenario(
    "policies:upsert-layer",
    "policy_layer",
    "Configuration",
    Effect.map(Fixtures.policyLayer, (id) => ({
      path: `${admin}/policy-layers/${id}`,
      body: { policy: { deny: true } }
    })),
    { path: `${admin}/policy-layers/${nobody}`, body: {} }
  ),
  "policy-layers.remove": scenario(
    "policies:delete-layer",
    "policy_layer",
    "Configuration",
    Effect.map(Fixtures.policyLayer, (id) => ({ path: `${admin}/policy-layers/${id}` })),
    { path: `${admin}/policy-layers/${nobody}` }
  ),
  "policy.simulate": scenario(
    "policies:simulate",
    "policy",
    undefined,
    Effect.succeed({ path: `${admin}/policy/simulate`, body: { path: "/v1/responses", body: { model: "m" } } }),
    { path: `${admin}/policy/simulate`, body: { path: "/v1/nothing" } }
  ),
  "family-a-routes.enable": a.enable,
  "family-a-routes.disable": a.disable,
  "family-a-routes.mode": a.mode,
  "family-a-routes.config": a.config,
  "family-b-routes.enable": b.enable,
  "family-b-routes.disable": b.disable,
  "family-b-routes.mode": b.mode,
  "family-b-routes.config": b.config,
  "providers.create": scenario(
    "providers:create",
    "provider",
    "Configuration",
    Effect.succeed({
      path: `${admin}/providers`,
      body: { provider: "upstream", name: "audited", base_url: "https://upstream.example" }
    }),
    { path: `${admin}/providers`, body: { provider: "upstream", name: "second", base_url: "https://upstream.example" } }
  ),
  "providers.update": scenario(
    "providers:update",
    "provider",
    "Configuration",
    Effect.map(Fixtures.provider, (id) => ({
      path: `${admin}/providers/${id}`,
      body: { base_url: "http://other:81" }
    })),
    { path: `${admin}/providers/${nobody}`, body: {} }
  ),
  "providers.remove": scenario(
    "providers:delete",
    "provider",
    "Configuration",
    Effect.map(Fixtures.provider, (id) => ({ path: `${admin}/providers/${id}` })),
    { path: `${admin}/providers/${nobody}` }
  ),
  "providers.enable": providerAction("enable"),
  "providers.disable": providerAction("disable"),
  "upstream-credentials.upsert": scenario(
    "upstream_credentials:upsert",
    "upstream_credential_mapping",
    "Project",
    Effect.map(Fixtures.project, (target_id) => ({
      path: `${admin}/providers/upstream-credentials`,
      body: { scope: "project", target_id, credential: "sk-audited" }
    })),
    { path: `${admin}/providers/upstream-credentials`, body: { scope: "project", target_id: nobody } }
  ),
  "upstream-credentials.remove": scenario(
    "upstream_credentials:delete",
    "upstream_credential_mapping",
    "Key",
    Effect.map(Fixtures.mapping, (id) => ({ path: `${admin}/providers/upstream-credentials/${id}` })),
    { path: `${admin}/providers/upstream-credentials/${nobody}` }
  ),
  "upstream-credentials.enable": mappingAction("enable"),
  "upstream-credentials.disable": mappingAction("disable"),
  "services.create": scenario(
    "services:create",
    "service",
    "Configuration",
    Effect.succeed({ path: `${admin}/services`, body: { name: "audited", credential: "svc-audited" } }),
    { path: `${admin}/services`, body: { name: "audited" } }
  ),
  "services.update": scenario(
    "services:update",
    "service",
    "Configuration",
    Effect.map(Fixtures.service, (name) => ({ path: `${admin}/services/${name}`, body: { timeout_ms: 7 } })),
    { path: `${admin}/services/nothing`, body: { timeout_ms: 7 } }
  ),
  "services.remove": scenario(
    "services:delete",
    "service",
    "Configuration",
    Effect.map(Fixtures.service, (name) => ({ path: `${admin}/services/${name}` })),
    { path: `${admin}/services/nothing` }
  ),
  "services.enable": serviceAction("enable"),
  "services.disable": serviceAction("disable"),
  "service-import.import": importAction("import"),
  "service-import.sync": importAction("sync"),
  "service-import.activate": scenario(
    "services:import_activate",
    "service_registry",
    "Configuration",
    Effect.succeed({ path: `${admin}/services/import/activate`, body: { services: [{ name: "audited" }] } }),
    { path: `${admin}/services/import/activate`, body: { services: [{ name: "Not A Label" }] } }
  ),
  "service-import.rollback": scenario(
    "services:import_rollback",
    "service_registry",
    "Configuration",
    Effect.map(ok("POST", `${admin}/services/import/activate`, { body: { services: [] } }), (json) => ({
      path: `${admin}/services/import/rollback/${at(json, "snapshot", "version")}`
    })),
    { path: `${admin}/services/import/rollback/999999` }
  ),
  "service-openapi.sync": scenario("services:openapi_sync", "service", "Configuration", documented, {
    path: `${admin}/services/nothing/openapi/sync`,
    body: { expected_schema_hash: `sha256:${"0".repeat(64)}` }
  }),
  "studio.connect": scenario(
    "settings:studio_connection_update",
    "studio_connection",
    undefined,
    Effect.succeed({ path: `${admin}/studio/connection`, body: { base_url: "http://studio.example", token: "t" } }),
    { path: `${admin}/studio/connection`, body: { base_url: "nowhere" } }
  ),
  "provider-health.put": scenario(
    "providers:health_update",
    "provider_health",
    undefined,
    Effect.succeed({
      path: `${admin}/provider-health/state`,
      body: { name: "audited", provider: "upstream", status: "degraded", circuit_state: "half_open" }
    }),
    { path: `${admin}/provider-health/state`, body: { name: "audited", provider: "upstream" } }
  ),
  "provider-health.check": scenario(
    "providers:health_check",
    "provider_health",
    undefined,
    Effect.as(nothingToAsk, { path: `${admin}/provider-health/check` }),
    { path: `${admin}/provider-health/state` }
  ),
  "upstream-passthrough.update": scenario(
    "providers:upstream_passthrough_update",
    "upstream_passthrough_settings",
    "Configuration",
    Effect.succeed({ path: `${admin}/providers/upstream-passthrough`, body: { enabled: true } }),
    { path: `${admin}/providers/upstream-passthrough`, body: { timeout_ms: 0 } }
  ),
  "guardrails.create": scenario(
    "guardrails:create",
    "guardrail",
    "Configuration",
    Effect.succeed({
      path: `${admin}/guardrails`,
      body: { name: "audited", endpoint_url: "https://guard.example/check", failure_policy: "fail_open" }
    }),
    { path: `${admin}/guardrails`, body: { name: "second", endpoint_url: "ftp://x", failure_policy: "fail_open" } }
  ),
  "guardrails.update": scenario(
    "guardrails:update",
    "guardrail",
    "Configuration",
    Effect.map(Fixtures.guardrail, (name) => ({
      path: `${admin}/guardrails/${name}`,
      body: { default_on: true, bearer_token: "sk-audited" }
    })),
    { path: `${admin}/guardrails/unknown`, body: {} }
  ),
  "guardrails.remove": scenario(
    "guardrails:delete",
    "guardrail",
    "Configuration",
    Effect.map(Fixtures.guardrail, (name) => ({ path: `${admin}/guardrails/${name}` })),
    { path: `${admin}/guardrails/pii-redact` }
  ),
  "model-prices.put": scenario(
    "prices:upsert",
    "model_price",
    "Configuration",
    Effect.succeed({ path: prices, body: price }),
    { path: prices, body: { input_usd_per_million: -1 } }
  ),
  "front-door.update": scenario(
    "settings:gateway_auth_update",
    "gateway_auth_settings",
    "Configuration",
    Effect.succeed({ path: `${admin}/auth/front-door`, body: { required_scope: "Models.Use" } }),
    { path: `${admin}/auth/front-door`, body: { identity_enabled: true } }
  ),
  "model-prices.remove": scenario(
    "prices:delete",
    "model_price",
    "Configuration",
    Effect.as(ok("PUT", prices, { body: price }), { path: prices }),
    { path: `${prices}-unknown` }
  )
}

/**
 * The rotation of the own token is tested below, configuration as code in Configuration tests of its own, all routes
 * with the other settings, the link to the upstream's UI where there is a listener for it, an import of prices with the
 * price book, the drain of a process with the processes, sessions with signing in and with operator tokens, and the rotation of a key by its holder with the holder's view.
 */
const elsewhere = [
  "operator-token.rotate",
  "configuration.plan",
  "configuration.apply",
  "routes.config",
  "bulk-key-changes.create",
  "bulk-key-changes.stop",
  "bulk-key-changes.undo",
  "upstream-ui.open",
  "model-prices.import",
  "system.drain",
  "session.create",
  "session.end",
  "operator-sessions.end",
  "me.rotate",
  "me.endGrace",
  "me.revoke",
  "me.askForRaise"
]
/** They ask with a body, or ask others, and change nothing that operators decide. */
const asking = new Set([
  "me.test",
  "guardrails.test",
  "policy.impact",
  "studio.test",
  "service-import.preview",
  "service-openapi.preview"
])

const mutations = mutating()

it("nothing in src/control writes around it, but the first token and notes: of use, and of how far a change of many keys is", () => {
  const directory = new URL("../../../src/control/", import.meta.url)
  const around = readdirSync(directory, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts") && name !== "audit/Audit.ts")
    .sort()
    .flatMap((name) =>
      [
        ...readFileSync(new URL(name, directory), "utf8").matchAll(/sql`\s*(INSERT INTO|UPDATE|DELETE FROM) (\w+)/g)
      ].map(([, verb, table]) => `${name}: ${verb} ${table}`)
    )
  assert.deepStrictEqual(around, [
    "keys/KeyAuthentication.ts: UPDATE api_keys",
    "keys/bulk/BulkKeyWorker.ts: DELETE FROM bulk_key_changes",
    "keys/bulk/BulkKeyWorker.ts: UPDATE bulk_key_changes",
    "keys/bulk/BulkKeyWorker.ts: UPDATE bulk_key_changes",
    "keys/bulk/BulkKeyWorker.ts: UPDATE bulk_key_changes",
    "keys/bulk/BulkKeyWorker.ts: UPDATE bulk_key_change_items",
    "keys/bulk/BulkKeyWorker.ts: UPDATE bulk_key_changes",
    "operators/OperatorTokens.ts: INSERT INTO operator_tokens",
    "operators/OperatorTokens.ts: UPDATE operator_tokens",
    "session/Sessions.ts: UPDATE operator_sessions",
    "session/Sessions.ts: UPDATE operator_tokens"
  ])
})

suite("Audit", (it) => {
  it.effect("every mutating endpoint has a scenario, and some a test of their own", () =>
    Effect.sync(() =>
      assert.deepStrictEqual(mutations.map(({ name }) => name).sort(), [...Object.keys(scenarios), ...elsewhere].sort())
    )
  )

  for (const [name, { action, fails, notice, target, works }] of Object.entries(scenarios)) {
    const method = mutations.find((mutation) => mutation.name === name)?.method ?? "GET"

    it.effect(`${name}: one event and one notice with the change, none with a refusal`, () =>
      Effect.gen(function* () {
        const mutation = yield* works
        const before = yield* written
        const heard = yield* listen
        const answer = yield* call(method, mutation.path, {
          ...mutation,
          headers: {
            "x-request-id": `audit-${name}`,
            "user-agent": "operator/1",
            "x-forwarded-for": "192.0.2.7, 10.0.0.1"
          }
        })
        assert.include([200, 204], answer.status, answer.text)
        assert.strictEqual(yield* written, before + 1)

        const [event] = yield* newest
        assert.deepInclude(event, {
          action,
          target_type: target,
          request_id: `audit-${name}`,
          ip: "192.0.2.7",
          user_agent: "operator/1"
        })
        if (method === "DELETE") assert.isNull(event?.["after_json"])
        else
          assert.deepStrictEqual(
            event?.["after_json"],
            at(answer.json, "key") ?? at(answer.json, "token") ?? answer.json
          )
        assert.deepStrictEqual(yield* heard, notice === undefined ? [] : [notice])

        const refused = yield* fails
        const refusal = yield* call(method, refused.path, refused)
        assert.isAtLeast(refusal.status, 400)
        assert.isBelow(refusal.status, 500)
        assert.strictEqual(yield* written, before + 1)
      })
    )
  }

  it.effect("operator-token.rotate: one event; the new token works, the old one is refused", () =>
    Effect.gen(function* () {
      const before = yield* written
      const rotated = yield* call("POST", `${admin}/operator-token/rotate`)
      const raw = at(rotated.json, "raw_token")
      assert.match(String(raw), /^op_live_[0-9a-f]{64}$/)
      assert.strictEqual(yield* written, before + 1)
      const [event] = yield* newest
      assert.deepInclude(event, { action: "operators:rotate", target_type: "operator_token" })
      assert.deepStrictEqual(event?.["after_json"], at(rotated.json, "token"))

      const old = yield* call("GET", `${admin}/projects`)
      assert.strictEqual(at(old.json, "error", "code"), "disabled_operator_token")
      const again = yield* call("POST", `${admin}/operator-token/rotate`)
      assert.strictEqual(again.status, 401)
      assert.strictEqual(yield* written, before + 1)
      yield* ok("GET", `${admin}/projects`, { authorization: `Bearer ${raw}` })

      yield* reinstate
    })
  )

  it.effect("of rotations at once with one token, one succeeds", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const before = yield* written
      const answers = yield* Effect.forEach(
        Array.from({ length: 5 }),
        () => call("POST", `${admin}/operator-token/rotate`),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(answers.map(({ status }) => status).sort(), [200, 401, 401, 401, 401])
      assert.strictEqual(yield* written, before + 1)
      assert.lengthOf(yield* sql`SELECT 1 FROM operator_tokens WHERE NOT disabled AND revoked_at IS NULL`, 1)
      yield* reinstate
    })
  )

  it.effect("the log can be filtered and paged", () =>
    Effect.gen(function* () {
      const id = yield* Fixtures.key
      for (const verb of ["disable", "enable", "revoke"]) yield* ok("POST", `${admin}/keys/${id}/${verb}`)
      const about = `${admin}/audit-events?target_type=key&target_id=${id}`
      const all = yield* ok("GET", about)
      assert.deepStrictEqual(actionsOf(all), ["keys:revoke", "keys:enable", "keys:disable", "keys:create"])
      assert.deepStrictEqual(actionsOf(yield* ok("GET", `${about}&action=keys:enable`)), ["keys:enable"])
      const first = yield* call("GET", `${about}&limit=3`)
      const rest = yield* call("GET", `${about}&limit=3&cursor=${first.headers["x-next-cursor"]}`)
      assert.deepStrictEqual([...actionsOf(first.json), ...actionsOf(rest.json)], actionsOf(all))
      assert.isUndefined(rest.headers["x-next-cursor"])
      const newest = (query: string) => Effect.map(ok("GET", `${admin}/audit-events?limit=1${query}`), actionsOf)
      const signsIn = yield* call("POST", "/admin-ui/session", { body: { token: operatorToken } })
      assert.strictEqual(signsIn.status, 200)
      assert.deepStrictEqual(yield* newest(""), ["sessions:sign_in"])
      assert.deepStrictEqual(yield* newest("&configuring=true"), ["keys:revoke"])
      assert.deepStrictEqual(yield* newest("&configuring=false"), ["sessions:sign_in"])
      const nobodys = yield* ok("GET", `${admin}/audit-events?actor_token_id=${nobody}`)
      assert.deepStrictEqual(nobodys, [])
      const since = (from: string) => Effect.map(ok("GET", `${about}&from=${from}`), actionsOf)
      assert.deepStrictEqual(yield* since(String(at(all, 1, "created_at"))), ["keys:revoke", "keys:enable"])
      const until = yield* ok("GET", `${about}&to=${at(all, 2, "created_at")}`)
      assert.deepStrictEqual(actionsOf(until), ["keys:create"])
    })
  )

  it.effect("events name their objects, also those that only their ids name, and layers that are deleted", () =>
    Effect.gen(function* () {
      const nameOf = (targetId: string) =>
        Effect.map(ok("GET", `${admin}/audit-events?target_id=${targetId}&limit=1`), (all) => at(all, 0, "target_name"))
      const policy = { rpm_limit: 5 }
      const made = yield* ok("POST", `${admin}/keys`, {
        body: { owner_type: "individual", name: "named in the log", policy }
      })
      const id = String(at(at(made, "key"), "id"))
      yield* ok("POST", `${admin}/limits/${id}/raise`, { body: Fixtures.raise })
      assert.strictEqual(yield* nameOf(id), "named in the log")
      const project = yield* ok("POST", `${admin}/projects`, { body: { name: "owner of a layer" } })
      const scope_id = String(at(project, "id"))
      const layer = yield* ok("POST", `${admin}/policy-layers`, { body: { kind: "project", scope_id, policy } })
      assert.strictEqual(yield* nameOf(String(at(layer, "id"))), "project owner of a layer")
      const team = yield* ok("POST", `${admin}/policy-layers`, { body: { kind: "team", scope_id: "gone", policy } })
      yield* ok("DELETE", `${admin}/policy-layers/${at(team, "id")}`)
      const ofTeam = yield* ok("GET", `${admin}/audit-events?target_id=${at(team, "id")}`)
      assert.deepStrictEqual([at(ofTeam, 0, "target_name"), at(ofTeam, 1, "target_name")], ["team gone", "team gone"])
      yield* ok("PUT", `${admin}/model-prices/named-by-its-id`, {
        body: { input_usd_per_million: 1, output_usd_per_million: 2 }
      })
      assert.isNull(yield* nameOf("named-by-its-id"))
    })
  )

  it.effect("events name the operator token, and the values of the filters can be listed", () =>
    Effect.gen(function* () {
      const id = yield* Fixtures.key
      const tokens = yield* ok("GET", `${admin}/operator-tokens`)
      const [event] = yield* Effect.map(ok("GET", `${admin}/audit-events?target_id=${id}`), (all) =>
        Array.isArray(all) ? all : []
      )
      const names = Array.isArray(tokens) ? tokens.map((token) => [at(token, "id"), at(token, "name")]) : []
      assert.deepInclude(names, [at(event ?? null, "actor_token_id"), at(event ?? null, "actor_name")])
      const listed = yield* ok("GET", `${admin}/audit-events/actions`)
      const ofGuardrails = Array.isArray(listed) ? listed.find((one) => at(one, "target_type") === "guardrail") : null
      assert.deepStrictEqual(at(ofGuardrails ?? null, "actions"), [
        "guardrails:create",
        "guardrails:update",
        "guardrails:delete"
      ])
    })
  )
})

const actionsOf = (events: Parameters<typeof at>[0]) =>
  Array.isArray(events) ? events.map((event) => at(event, "action")) : []

/** The token of the tests is the active one again. */
const reinstate = Effect.gen(function* () {
  const { sql } = yield* Database
  yield* sql`UPDATE operator_tokens SET disabled = true, revoked_at = now() WHERE NOT disabled`
  yield* sql`
    UPDATE operator_tokens SET disabled = false, revoked_at = NULL WHERE token_prefix = ${operatorToken.slice(0, 16)}`
})

const written = Effect.gen(function* () {
  const { sql } = yield* Database
  const [row] = yield* sql<{ readonly n: number }>`SELECT count(*)::int AS n FROM audit_events`
  return row?.n ?? 0
})

const newest = Effect.flatMap(
  Database,
  ({ sql }) => sql`SELECT * FROM audit_events ORDER BY created_at DESC, id DESC LIMIT 1`
)

/** What gateways hear between now and when the inner effect runs: a last notice of our own ends the list. */
const listen = Effect.gen(function* () {
  const { changes, notify } = yield* Database
  const notices = yield* changes(Changes.channel)
  const heard = yield* notices.pipe(
    Stream.takeUntil((text) => text === "end"),
    Stream.runCollect,
    Effect.forkScoped
  )
  return Effect.gen(function* () {
    yield* notify(Changes.channel, "end")
    const texts = (yield* Fiber.join(heard)).filter((text) => text !== "end")
    return yield* Effect.forEach(texts, (text) => Effect.map(Changes.decodeNotice(text), ({ change }) => change._tag))
  })
})

function mutating() {
  const found: Array<{ readonly name: string; readonly method: Parameters<typeof call>[0] }> = []
  HttpApi.reflect(ControlApi, {
    onGroup: () => {},
    onEndpoint: ({ endpoint: { identifier, method }, group }) => {
      const name = `${group.identifier}.${identifier}`
      // what a key's holder tries out changes nothing
      if (method !== "GET" && !asking.has(name) && group.identifier !== "key-guardrails") found.push({ name, method })
    }
  })
  return found
}
