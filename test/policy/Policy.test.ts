import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { type AllowList, allow, allowAll } from "../../src/policy/AllowList.ts"
import * as Facts from "../../src/policy/facts/Facts.ts"
import { intersection, type KeyPolicy, neutral } from "../../src/policy/KeyPolicy.ts"
import { type Limit, limited, unlimited } from "../../src/policy/Limit.ts"
import * as Policy from "../../src/policy/Policy.ts"
import { PolicyRoute } from "../../src/policy/routes/CanonicalRoute.ts"
import * as Policies from "./Policies.ts"

describe("Policy", () => {
  it("that says nothing allows everything", () => {
    fc.assert(
      fc.property(Policies.question, (question) => {
        const plain = { ...question, service: undefined }
        assert.deepStrictEqual(Policy.decide(neutral, plain), {
          _tag: "Allowed",
          passed: order
        })
      }),
      { numRuns: 200 }
    )
  })

  describe("refuses by one rule alone, in words that name it", () => {
    it.each(rules())("%s", (check, policy, facts, more, message, param) => {
      const denied = Policy.decide(
        { ...neutral, ...policy },
        { ...plain, ...more, facts: { ...plain.facts, ...facts } }
      )
      assert.deepStrictEqual(denied, {
        _tag: "Denied",
        passed: order.slice(0, order.indexOf(check)),
        denial: {
          check,
          code: codes[check] ?? "policy_denied",
          message,
          ...(param === undefined ? {} : { param }),
          ...(check === "concurrency" ? { retryAfterSeconds: 1 } : {})
        }
      })
    })

    it.each(rules())("%s: and lets through what the rule is not about", (_, policy) => {
      const undemanding: Policy.PolicyRequest = {
        ...plain,
        route: "/v1/models",
        hourUtc: 8,
        running: 1,
        estimatedCostNanos: 0,
        unpricedModels: [],
        requestBytes: 0,
        facts: Facts.noFacts
      }
      const decision = Policy.decide({ ...neutral, ...policy, deny: false, allowed_providers: allowAll }, undemanding)
      assert.strictEqual(decision._tag, "Allowed")
    })
  })

  it("refuses before the body what it refuses after it, and before the body only what needs none", () => {
    fc.assert(
      fc.property(Policies.policy, Policies.question, (policy, question) => {
        const before = Policy.decideBeforeBody(policy, { ...question, facts: Facts.noFacts })
        const after = Policy.decide(policy, question)
        if (before._tag === "Denied") assert.deepStrictEqual(after, before)
        else if (after._tag === "Denied") {
          const ofBody = order.slice(order.indexOf("model"))
          const named = question.service === undefined ? ["service" as const] : []
          assert.include([...named, ...ofBody], after.denial.check)
        }
      }),
      { numRuns: 500 }
    )
  })

  it("the first rule that fails, in their order, decides", () => {
    let policy: KeyPolicy = Object.assign({ ...neutral }, ...rules().map(([, policy]) => policy))
    const { facts }: Policy.PolicyRequest = {
      ...plain,
      facts: {
        ...plain.facts,
        stream: true,
        tools: true,
        toolCount: 3,
        toolSchemaBytes: 99,
        service: "ocr"
      }
    }
    const supposed = { ...plain, responseBytes: 3000 }
    const decided = order.map((expected) => {
      // any limit of the later checks refuses such work too
      const worksLater = order.indexOf(expected) <= order.indexOf("later_work")
      const decision = Policy.decide(policy, { ...supposed, worksLater, facts })
      policy = { ...policy, ...lifted[expected] }
      return decision._tag === "Denied" ? decision.denial.check : "allowed"
    })
    assert.deepStrictEqual<unknown>(decided, order)
    assert.strictEqual(Policy.decide(policy, { ...supposed, facts })._tag, "Allowed")
  })

  it("looks at the body of a service's request exactly where it says so", () => {
    const bodiless: Partial<KeyPolicy> = {
      allowed_models: allowAll,
      allow_streaming: true,
      allow_tools: true,
      max_tool_call_count: unlimited,
      max_tool_schema_bytes: unlimited,
      max_output_tokens_per_request: unlimited
    }
    fc.assert(
      fc.property(Policies.policy, Policies.question, (any, { service = { name: "ocr", linked: [] }, ...rest }) => {
        const policy = { ...any, ...bodiless }
        const { inputTokens } = rest.facts
        assert.isFalse(Policy.dependsOnBody(policy))
        assert.deepStrictEqual(
          Policy.decide(policy, { ...rest, service }),
          Policy.decide(policy, { ...rest, service, facts: { ...Facts.noFacts, inputTokens } })
        )
      }),
      { numRuns: 500 }
    )
    const bodyRules = ["model", "streaming", "tools", "tool_count", "tool_schema", "output_tokens"]
    for (const [check, policy] of rules()) {
      assert.strictEqual(Policy.dependsOnBody({ ...neutral, ...policy }), bodyRules.includes(check), check)
    }
  })

  it("denying more never allows more", () => {
    fc.assert(
      fc.property(Policies.policy, stricter, Policies.question, (policy, stricten, question) => {
        const before = Policy.decide(policy, question)
        const after = Policy.decide(stricten(policy), question)
        if (before._tag === "Denied") assert.strictEqual(after._tag, "Denied")
        assert.isAtMost(after.passed.length, before.passed.length)
      }),
      { numRuns: 300 }
    )
  })

  it("an empty list allows nothing, and a limit of zero holds nothing", () => {
    const asked = { ...plain, facts: { ...plain.facts, inputTokens: 1 }, estimatedCostNanos: 1 }
    const strict: ReadonlyArray<Partial<KeyPolicy>> = [
      { allowed_routes: allow([]) },
      { allowed_models: allow([]) },
      { allowed_providers: allow([]) },
      { allowed_hours_utc: allow([]) },
      { max_input_tokens_per_request: limited(0) },
      { max_cost_per_request: limited(0) }
    ]
    for (const policy of strict) assert.strictEqual(Policy.decide({ ...neutral, ...policy }, asked)._tag, "Denied")
  })

  describe("a registered service", () => {
    const asks = (linked: ReadonlyArray<string>, policy: Partial<KeyPolicy>) => {
      const decision = Policy.decide(
        { ...neutral, ...policy },
        { ...plain, route: "/services/*", provider: "internal-service", service: { name: "ocr", linked } }
      )
      return decision._tag === "Denied" ? decision.denial.check : "allowed"
    }

    it.each([
      [[], {}, "allowed"],
      [[], { allowed_services: allow(["ocr"]) }, "allowed"],
      [[], { allowed_services: allow(["payments"]) }, "service"],
      [["ocr"], { allowed_services: allow(["payments"]) }, "allowed"],
      [["payments"], { allowed_services: allow(["ocr"]) }, "service"],
      [["ocr"], { allowed_routes: allow(["/v1/models" as const]) }, "allowed"],
      [[], { allowed_routes: allow(["/v1/models" as const]) }, "route"],
      [["payments"], { allowed_routes: allow(["/v1/models" as const]) }, "route"],
      [["ocr"], { allowed_providers: allow(["upstream" as const]) }, "provider"]
    ])("with links %j and %j: %s", (linked, policy, expected) => {
      assert.strictEqual(asks(linked, policy), expected)
    })
  })

  it("the layers that cause a denial are those that deny by that check alone", () => {
    fc.assert(
      fc.property(
        fc.array(Policies.policy, { minLength: 1, maxLength: 4 }),
        Policies.question,
        (policies, question) => {
          const layers = policies.map((policy, index) => ({ index, policy }))
          for (const { check } of Policy.allDenials(policies.reduce(intersection), question)) {
            const causes = Policy.denyingLayers(layers, check, question)
            assert.isNotEmpty(causes)
            for (const { index, policy } of layers) {
              const denies = Policy.allDenials(policy, question).some((denial) => denial.check === check)
              assert.strictEqual(
                causes.some((cause) => cause.index === index),
                denies
              )
            }
          }
        }
      ),
      { numRuns: 300 }
    )
  })

  it("names the lists that have nothing in common, and who set them", () => {
    const layers = [
      { policy: { ...neutral, allowed_models: allow(["small"]), allowed_hours_utc: allow([]) } },
      { policy: neutral },
      { policy: { ...neutral, allowed_models: allow(["large"]), allowed_hours_utc: allow([3]) } }
    ]
    const merged = layers.map(({ policy }) => policy).reduce(intersection)
    assert.deepStrictEqual(Policy.disjointLists(merged, layers), [
      { list: "allowed_models", layers: layers.filter(({ policy }) => policy !== neutral) }
    ])
  })

  it("every model of a batch must be allowed", () => {
    const decide = (...models: ReadonlyArray<string>) =>
      Policy.decide({ ...neutral, allowed_models: allow(["small"]) }, { ...plain, facts: { ...plain.facts, models } })
        ._tag
    assert.deepStrictEqual([decide("small"), decide("small", "large"), decide()], ["Allowed", "Denied", "Allowed"])
  })
})

const order: ReadonlyArray<Policy.Check> = [
  ...([
    "deny",
    "route",
    "provider",
    "hours",
    "concurrency",
    "later_work",
    "service",
    "model",
    "streaming",
    "tools",
    "tool_count",
    "tool_schema",
    "request_bytes",
    "response_bytes",
    "input_tokens",
    "output_tokens",
    "cost",
    "price"
  ] as const)
]

const plain: Policy.PolicyRequest = {
  route: "/v1/chat/completions",
  provider: "upstream",
  worksLater: false,
  facts: { ...Facts.noFacts, models: ["large"], inputTokens: 100, boundedOutput: 50, largestOutput: 50 },
  requestBytes: 1000,
  responseBytes: undefined,
  hourUtc: 12,
  running: 3,
  estimatedCostNanos: 20_000_000,
  unpricedModels: ["la\u0000rge"]
}

type Rule = [
  check: Policy.Check,
  policy: Partial<KeyPolicy>,
  facts: Partial<Facts.Facts>,
  question: Partial<Policy.PolicyRequest>,
  message: string,
  param?: string
]

function rules(): ReadonlyArray<Rule> {
  return [
    ["deny", { deny: true }, {}, {}, "This key's policy denies every request. Ask an operator to change the policy."],
    [
      "route",
      { allowed_routes: allow(["/v1/models"]) },
      {},
      {},
      "This key's policy does not allow the route /v1/chat/completions. Ask an operator to allow it."
    ],
    [
      "provider",
      { allowed_providers: allow(["compat"]) },
      {},
      {},
      "This key's policy does not allow the provider upstream. Ask an operator to allow it."
    ],
    [
      "service",
      { allowed_services: allow(["summary"]) },
      { service: "ocr" },
      {},
      "This key's policy does not allow this service. Ask an operator to allow it."
    ],
    [
      "model",
      { allowed_models: allow(["small"]) },
      {},
      {},
      'This key\'s policies do not allow the requested model "large" (allowed: small).',
      "model"
    ],
    [
      "streaming",
      { allow_streaming: false },
      { stream: true },
      {},
      'This key\'s policy does not allow streaming; send the request without "stream": true.',
      "stream"
    ],
    [
      "tools",
      { allow_tools: false },
      { tools: true },
      {},
      "This key's policy does not allow tools; send the request without them.",
      "tools"
    ],
    [
      "tool_count",
      { max_tool_call_count: limited(2) },
      { tools: true, toolCount: 3 },
      {},
      "The request offers 3 tools; the limit max_tool_call_count of this key's policy is 2. Offer fewer tools, or ask an operator to raise the limit.",
      "tools"
    ],
    [
      "tool_schema",
      { max_tool_schema_bytes: limited(98) },
      { tools: true, toolSchemaBytes: 99 },
      {},
      "The request's tools take 99 bytes; the limit max_tool_schema_bytes of this key's policy is 98. Shorten the tools' schemas, or ask an operator to raise the limit.",
      "tools"
    ],
    [
      "later_work",
      { daily_budget_usd: limited(5) },
      {},
      { worksLater: true },
      "The gateway cannot enforce daily_budget_usd on this path, because the upstream works after its response and does not report models and tokens. Send the requests individually (or in bulk to /v1/messages/batches), or ask an operator for a key without that limit."
    ],
    [
      "hours",
      { allowed_hours_utc: allow([8, 9]) },
      {},
      {},
      "This key's policy does not allow requests in hour 12 UTC."
    ],
    [
      "concurrency",
      { max_concurrent_requests: limited(2) },
      {},
      {},
      "This key would have 3 requests running at once; the limit max_concurrent_requests of its policy is 2. Wait for a request to end, or ask an operator to raise the limit."
    ],
    [
      "request_bytes",
      { max_request_body_bytes: 999 },
      {},
      {},
      "The request body is larger than 999 bytes (max_request_body_bytes of this key's policy). Send a smaller body, or ask an operator to raise the limit: PATCH /admin-ui/admin/keys/{id}, or a policy layer above the key."
    ],
    [
      "response_bytes",
      { max_response_body_bytes: 2999 },
      {},
      { responseBytes: 3000 },
      "The response is larger than 2999 bytes (max_response_body_bytes of this key's policy). Request a smaller response, or ask an operator to raise the limit: PATCH /admin-ui/admin/keys/{id}, or a policy layer above the key."
    ],
    [
      "input_tokens",
      { max_input_tokens_per_request: limited(99) },
      {},
      {},
      "The request has an estimated 100 input tokens; the limit max_input_tokens_per_request of this key's policy is 99. Shorten the input, or ask an operator to raise the limit."
    ],
    [
      "output_tokens",
      { max_output_tokens_per_request: limited(49) },
      {},
      {},
      "The request asks for up to 50 output tokens; the limit max_output_tokens_per_request of this key's policy is 49. Request fewer tokens, or ask an operator to raise the limit.",
      "max_tokens"
    ],
    [
      "cost",
      { max_cost_per_request: limited(0.01) },
      {},
      {},
      "The request's estimated cost is $0.02; the limit max_cost_per_request of this key's policy is $0.01. Shorten the request, or ask an operator to raise the limit."
    ],
    [
      "price",
      { unpriced_models: "refuse" },
      {},
      {},
      'This key\'s policy refuses models without a price (unpriced_models), and "la?rge" has none. Use a model with a price, or ask an operator to set it: PUT /admin-ui/admin/model-prices/la%3Frge, or svc-runtime prices import.',
      "model"
    ]
  ]
}

/** What takes back the policy of each rule. */
const lifted: Record<Policy.Check, Partial<KeyPolicy>> = {
  deny: { deny: false },
  route: { allowed_routes: allowAll },
  provider: { allowed_providers: allowAll },
  service: { allowed_services: allowAll },
  later_work: { daily_budget_usd: unlimited },
  model: { allowed_models: allowAll },
  streaming: { allow_streaming: true },
  tools: { allow_tools: true },
  tool_count: { max_tool_call_count: unlimited },
  tool_schema: { max_tool_schema_bytes: unlimited },
  hours: { allowed_hours_utc: allowAll },
  concurrency: { max_concurrent_requests: unlimited },
  request_bytes: { max_request_body_bytes: null },
  response_bytes: { max_response_body_bytes: null },
  input_tokens: { max_input_tokens_per_request: unlimited },
  output_tokens: { max_output_tokens_per_request: unlimited },
  cost: { max_cost_per_request: unlimited },
  price: { unpriced_models: "flat" }
}

const codes: Partial<Record<Policy.Check, Policy.DenialCode>> = {
  concurrency: "concurrency_limit_exceeded",
  request_bytes: "request_body_too_large",
  response_bytes: "response_body_too_large"
}

const fewer = <A>(list: AllowList<A>, keep: (value: A) => boolean, all: ReadonlyArray<A>): AllowList<A> =>
  allow((list._tag === "AllowAll" ? all : list.values).filter(keep))
const lower = (limit: Limit, by: number): Limit =>
  limited(limit._tag === "Unlimited" ? by : Math.max(0, limit.max - by))

/** One more thing that the policy forbids. */
const stricter: fc.Arbitrary<(policy: KeyPolicy) => KeyPolicy> = fc.oneof(
  fc.constant((policy: KeyPolicy) => ({ ...policy, deny: true })),
  fc.constant((policy: KeyPolicy) => ({ ...policy, allow_streaming: false })),
  fc.constant((policy: KeyPolicy) => ({ ...policy, allow_tools: false })),
  fc.func(fc.boolean()).map((keep) => (policy: KeyPolicy) => ({
    ...policy,
    allowed_routes: fewer(policy.allowed_routes, keep, PolicyRoute.literals)
  })),
  fc.func(fc.boolean()).map((keep) => (policy: KeyPolicy) => ({
    ...policy,
    allowed_models: fewer(policy.allowed_models, keep, ["small", "large", "huge"])
  })),
  fc.func(fc.boolean()).map((keep) => (policy: KeyPolicy) => ({
    ...policy,
    allowed_hours_utc: fewer(policy.allowed_hours_utc, keep, [...Array(24).keys()])
  })),
  fc.nat(200).map((by) => (policy: KeyPolicy) => ({
    ...policy,
    max_input_tokens_per_request: lower(policy.max_input_tokens_per_request, by)
  })),
  fc
    .nat(2)
    .map((by) => (policy: KeyPolicy) => ({ ...policy, max_cost_per_request: lower(policy.max_cost_per_request, by) }))
)
