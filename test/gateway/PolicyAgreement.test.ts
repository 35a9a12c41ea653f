import { randomUUID } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Option, Schema } from "effect"
import fc from "fast-check"
import * as RedisMemory from "../../layers/RedisMemory.ts"
import { RequestId } from "../../src/control/api/schema/Errors.ts"
import { Operator } from "../../src/control/api/schema/Security.ts"
import { Audit } from "../../src/control/audit/Audit.ts"
import { PolicySimulator } from "../../src/control/policies/PolicySimulator.ts"
import { KeyPolicy } from "../../src/policy/KeyPolicy.ts"
import { GatewaySettings } from "../../src/process/GatewaySettings.ts"
import { Database } from "../../src/services/Database.ts"
import { RestoredCounters } from "../../src/state/limits/RestoredCounters.ts"
import { Vault } from "../../src/state/Vault.ts"
import * as Policies from "../policy/Policies.ts"
import * as Proxy from "./Proxy.ts"

/** What a request alone is decided by: counters and the answer are not asked for in a simulation. */
const deciding = [
  "deny",
  "allowed_routes",
  "allowed_models",
  "allowed_providers",
  "allowed_services",
  "allowed_hours_utc",
  "allow_streaming",
  "allow_tools",
  "max_cost_per_request",
  "max_input_tokens_per_request",
  "max_output_tokens_per_request",
  "max_request_body_bytes",
  "max_tool_call_count",
  "max_tool_schema_bytes",
  "unpriced_models"
]

const encode = Schema.encodeSync(KeyPolicy)

/** A policy that says everything forbids nearly everything. */
const policies = fc
  .tuple(Policies.policy, fc.subarray(deciding, { maxLength: 3 }))
  .map(([policy, fields]) =>
    Object.fromEntries(Object.entries(encode(policy)).filter(([name]) => fields.includes(name)))
  )

/** What a key or a layer says of `pii-redact`, and of one that is not there. */
const guarding = fc.constantFrom(
  {},
  { optional_guardrails: ["pii-redact", "gone"] },
  { mandatory_guardrails: ["pii-redact"] },
  { mandatory_guardrails: ["gone"] },
  { forbidden_guardrails: ["pii-redact"] }
)

const layers = fc.uniqueArray(
  fc.record({
    scope: fc.constantFrom(
      ["global", null] as const,
      ["team", "blue"] as const,
      ["route", "/v1/chat/completions"] as const,
      ["route", "/providers/compat/*"] as const,
      ["model", "small"] as const,
      ["model", "large"] as const
    ),
    policy: policies,
    shared: fc.constantFrom({}, { rpm_limit: 1_000_000 }, { tpm_limit: 1_000_000_000 }),
    guardrails: fc.oneof({ weight: 4, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: guarding })
  }),
  { maxLength: 3, selector: ({ scope }) => scope.join() }
)

const bodies = fc.record(
  {
    model: fc.constantFrom("small", "large", "huge"),
    stream: fc.oneof({ weight: 9, arbitrary: fc.boolean() }, { weight: 1, arbitrary: fc.constant("yes") }),
    tools: fc.array(fc.constant({ name: "look_up" }), { maxLength: 3 }),
    max_tokens: fc.nat(250),
    service: fc.constantFrom("ocr", "summary"),
    fallbacks: fc.constantFrom(["small"], ["large"], ["huge"]),
    route: fc.constant("fallback"),
    extra_body: fc.record(
      {
        model: fc.constantFrom("large", "huge"),
        max_tokens: fc.nat(250),
        n: fc.constantFrom(2, "2"),
        stream: fc.boolean()
      },
      { requiredKeys: [], noNullPrototype: true }
    ),
    guardrails: fc.constant(["pii-redact"]),
    messages: fc.array(fc.record({ content: fc.string({ maxLength: 60 }) }, { noNullPrototype: true }), {
      maxLength: 3
    })
  },
  { requiredKeys: [], noNullPrototype: true }
)

const requests = fc.oneof(
  fc.record({
    method: fc.constant("POST" as const),
    path: fc.constantFrom(
      ...["/v1/chat/completions", "/v1/messages?beta=1", "/v1/messages/count_tokens"],
      ...["/providers/compat/v1/chat/completions"],
      ...["/providers/compat/v1/chat/completions?x=/engines/%zz", "/providers/compat/v1/engines/large/completions"],
      ...["/v1/chat/completions?model=small", "/providers/compat/v1/batches"]
    ),
    body: bodies
  }),
  fc.record({
    method: fc.constant("POST" as const),
    path: fc.constant("/v1/messages/batches"),
    body: fc.record(
      { requests: fc.array(fc.record({ params: bodies }, { noNullPrototype: true }), { maxLength: 3 }) },
      { noNullPrototype: true }
    )
  }),
  fc.record({
    method: fc.constant("GET" as const),
    path: fc.constantFrom("/v1/models", "/v1/models/large", "/v1/messages/batches")
  })
)

type Asked = Parameters<PolicySimulator["Service"]["simulate"]>[0]

const ask = Effect.fnUntraced(function* (
  made: typeof layers extends fc.Arbitrary<infer A> ? A : never,
  own: object,
  guardrails: object,
  request: typeof requests extends fc.Arbitrary<infer A> ? A : never
) {
  const { sql } = yield* Database
  yield* sql`DELETE FROM policy_layers`
  for (const { guardrails, policy, scope, shared } of made) {
    yield* sql`INSERT INTO policy_layers (layer_kind, scope_id, policy, guardrail_policy, shared)
      VALUES (${scope[0]}, ${scope[1]}, ${JSON.stringify(policy)}::jsonb, ${JSON.stringify(guardrails)}::jsonb,
        ${JSON.stringify(shared)}::jsonb)`
  }
  const key = yield* Proxy.issueKey({ ...own })
  yield* sql`UPDATE api_keys SET team_id = 'blue', guardrail_policy = ${JSON.stringify(guardrails)}::jsonb
    WHERE id = ${key.id}`
  const gateway = yield* Proxy.restarted()
  const answer = yield* gateway.ask({ ...request, target: request.path, headers: key.headers })
  const { simulate } = yield* PolicySimulator
  const asked: Asked = { ...request, key_id: key.id }
  const { final_decision: decision } = yield* simulate(asked)
  const said = answer.status === 200 ? undefined : JSON.parse(answer.text).error
  const [record] = yield* gateway.records
  return {
    gateway: { code: said?.code ?? null, layer: record?.denial?.layer ?? null },
    simulator: { code: decision.error_code, layer: decision.layers[0] ?? null },
    messages: [said?.message ?? decision.message, decision.message]
  }
})

const simulator = PolicySimulator.layer.pipe(
  Layer.provide([
    Audit.layer,
    RestoredCounters.layer,
    Vault.layer(Option.none()),
    Layer.succeed(GatewaySettings, Proxy.settings)
  ]),
  Layer.provide(RedisMemory.layer({ prefix: "agreement:" })),
  Layer.provideMerge(Proxy.database)
)

layer(simulator)("the simulator and the gateway", (it) => {
  it.effect(
    "never disagree on the same request: neither on the code, nor the words, nor the layer",
    () =>
      Effect.gen(function* () {
        yield* Proxy.reset
        const { sql } = yield* Database
        yield* sql`INSERT INTO model_prices (model, input_nanos_per_million, output_nanos_per_million)
          VALUES ('small', 1000000000, 2000000000), ('large', 10000000000000, 20000000000000)`
        const tokenId = randomUUID()
        yield* sql`INSERT INTO operator_tokens (id, token_prefix, token_hash)
          VALUES (${tokenId}, 'op_live_', ${new Uint8Array(32)})`
        const operator = Operator.of({ tokenId, scopes: ["*"], ip: null, userAgent: null })
        const promise = Effect.runPromiseWith(yield* Effect.context<Database | PolicySimulator>())
        const seen = new Set<string | null>()
        const law = fc.asyncProperty(layers, policies, guarding, requests, (made, own, guardrails, request) =>
          promise(
            ask(made, own, guardrails, request).pipe(
              Effect.provideService(Operator, operator),
              Effect.provideService(RequestId, "agreement"),
              Effect.scoped,
              Effect.flatMap(({ gateway, messages: [said, simulated], simulator }) =>
                Effect.sync(() => {
                  seen.add(simulator.code)
                  assert.deepStrictEqual(simulator, gateway)
                  assert.strictEqual(simulated, said)
                })
              )
            )
          )
        )
        const unlisted = { method: "GET" as const, path: "/v1/models/large" as const }
        const chat = (body: object) => ({ method: "POST" as const, path: "/v1/chat/completions" as const, body })
        // the law is about each of the answers below, whatever is drawn
        yield* Effect.promise(() =>
          fc.assert(law, {
            numRuns: 75,
            examples: [
              [[], {}, {}, chat({ model: "small" })],
              [[], { allowed_models: ["small"] }, {}, chat({ model: "large" })],
              [[], { max_request_body_bytes: 1 }, {}, chat({ model: "small" })],
              [[], {}, {}, chat({ model: "small", stream: "yes" })],
              [[], {}, { mandatory_guardrails: ["gone"] }, chat({ model: "small" })],
              [[], {}, { forbidden_guardrails: ["pii-redact"] }, chat({ model: "small", guardrails: ["pii-redact"] })],
              [[], { allowed_models: ["small"] }, {}, unlisted]
            ]
          })
        )
        assert.includeMembers(
          [...seen],
          [
            null,
            "policy_denied",
            "request_body_too_large",
            "invalid_request_body",
            "guardrail_unavailable",
            "guardrail_forbidden",
            "object_not_found"
          ]
        )
      }),
    300_000
  )
})
