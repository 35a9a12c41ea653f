import { Effect } from "effect"
import { admin, at, idOf, ok } from "./Listener.ts"

let made = 0
const unused = (prefix: string) => `${prefix} ${++made}`

/** Things to work on, made through the API itself. */
export const project = Effect.suspend(() =>
  Effect.map(ok("POST", `${admin}/projects`, { body: { name: unused("project") } }), (json) => idOf(json))
)

export const key = Effect.map(ok("POST", `${admin}/keys`, { body: { owner_type: "individual" } }), (json) =>
  idOf(json, "key")
)

/** The path of the exceptions of a key that has a limit. */
export const limitedKey = Effect.map(
  ok("POST", `${admin}/keys`, { body: { owner_type: "individual", policy: { rpm_limit: 5 } } }),
  (json) => `${admin}/limits/${idOf(json, "key")}`
)

export const raise = { rpm_limit: 9, until: new Date(Date.now() + 86_400_000).toISOString(), reason: "a demo" }

/** The id of an open request of a key that has a limit. */
const requestOf = (policy: object, asked: object) =>
  Effect.flatMap(ok("POST", `${admin}/keys`, { body: { owner_type: "individual", policy } }), (created) =>
    Effect.map(
      ok("POST", "/admin-ui/v1/me/raise-requests", {
        authorization: `Bearer ${at(created, "raw_key")}`,
        body: { reason: "a demo", ...asked }
      }),
      (asked) => idOf(asked)
    )
  )

export const raiseRequest = requestOf({ rpm_limit: 5 }, {})
export const modelRequest = requestOf({ allowed_models: ["small"] }, { model: "large" })

export const token = Effect.suspend(() =>
  Effect.map(
    ok("POST", `${admin}/operator-tokens`, { body: { name: unused("token"), scopes: ["audit:read", "usage:read"] } }),
    (json) => idOf(json, "token")
  )
)

export const provider = Effect.suspend(() =>
  Effect.map(
    ok("POST", `${admin}/providers`, {
      body: { provider: "internal-service", name: unused("provider"), base_url: "https://service.example" }
    }),
    (json) => idOf(json)
  )
)

export const service = Effect.suspend(() => {
  const name = unused("service").replace(" ", "-")
  return Effect.as(
    ok("POST", `${admin}/services`, {
      body: { name, upstream_base_url: "http://127.0.0.1:9", credential: "svc-secret" }
    }),
    name
  )
})
export const policyLayer = Effect.suspend(() =>
  Effect.map(
    ok("POST", `${admin}/policy-layers`, {
      body: { kind: "team", scope_id: unused("team"), policy: { rpm_limit: 5 } }
    }),
    (json) => idOf(json)
  )
)

export const mapping = Effect.flatMap(key, (target_id) =>
  Effect.map(ok("POST", `${admin}/providers/upstream-credentials`, { body: { scope: "key", target_id } }), (json) =>
    idOf(json)
  )
)

export const guardrail = Effect.suspend(() => {
  const name = `guardrail-${++made}`
  const body = { name, endpoint_url: "https://guard.example/check", failure_policy: "fail_closed" }
  return Effect.as(ok("POST", `${admin}/guardrails`, { body }), name)
})
