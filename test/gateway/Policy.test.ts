import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import * as Facts from "../../src/gateway/Facts.ts"
import { type AllowList, allow, allowAll } from "../../src/gateway/model/AllowList.ts"
import { PolicyRoute } from "../../src/gateway/model/CanonicalRoute.ts"
import { type KeyPolicy, neutral } from "../../src/gateway/model/KeyPolicy.ts"
import { type Limit, limited, unlimited } from "../../src/gateway/model/Limit.ts"
import * as Policy from "../../src/gateway/Policy.ts"

describe("Policy", () => {
  it("that says nothing allows everything", () => {
    fc.assert(
      fc.property(question, (question) => {
        assert.deepStrictEqual(Policy.decide(neutral, question), { _tag: "Allowed", passed: order })
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
          code: "policy_denied",
          message,
          ...(param === undefined ? {} : { param })
        }
      })
    })

    it.each(rules())("%s: and lets through what the rule is not about", (_, policy) => {
      const undemanding: Policy.Question = {
        ...plain,
        route: "/v1/models",
        hourUtc: 8,
        estimatedCostNanos: 0,
        facts: Facts.none
      }
      const decision = Policy.decide({ ...neutral, ...policy, deny: false, allowed_providers: allowAll }, undemanding)
      assert.strictEqual(decision._tag, "Allowed")
    })
  })

  it("the first rule that fails, in the reference's order, decides", () => {
    let policy: KeyPolicy = Object.assign({ ...neutral }, ...rules().map(([, policy]) => policy))
    const facts = { ...plain.facts, stream: true, tools: true }
    const decided = order.map((expected) => {
      const decision = Policy.decide(policy, { ...plain, facts })
      policy = { ...policy, ...lifted[expected] }
      return decision._tag === "Denied" ? decision.denial.check : "allowed"
    })
    assert.deepStrictEqual<unknown>(decided, order)
    assert.strictEqual(Policy.decide(policy, { ...plain, facts })._tag, "Allowed")
  })

  it("denying more never allows more", () => {
    fc.assert(
      fc.property(policies, stricter, question, (policy, stricten, question) => {
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

  it("every model of a batch must be allowed", () => {
    const decide = (...models: ReadonlyArray<string>) =>
      Policy.decide({ ...neutral, allowed_models: allow(["small"]) }, { ...plain, facts: { ...plain.facts, models } })
        ._tag
    assert.deepStrictEqual([decide("small"), decide("small", "large"), decide()], ["Allowed", "Denied", "Allowed"])
  })
})

const order: ReadonlyArray<Policy.Check> = [
  ...(["deny", "route", "provider", "model", "streaming", "tools", "hours", "input_tokens", "cost"] as const)
]

const plain: Policy.Question = {
  route: "/v1/chat/completions",
  provider: "upstream",
  facts: { ...Facts.none, models: ["large"], inputTokens: 100, maxOutputTokens: 50 },
  hourUtc: 12,
  estimatedCostNanos: 20_000_000
}

type Rule = [
  check: Policy.Check,
  policy: Partial<KeyPolicy>,
  facts: Partial<Facts.Facts>,
  question: Partial<Policy.Question>,
  message: string,
  param?: string
]

function rules(): ReadonlyArray<Rule> {
  return [
    ["deny", { deny: true }, {}, {}, "This key's policy denies every request."],
    [
      "route",
      { allowed_routes: allow(["/v1/models"]) },
      {},
      {},
      "This key's policy does not allow the route /v1/chat/completions."
    ],
    [
      "provider",
      { allowed_providers: allow(["compat"]) },
      {},
      {},
      "This key's policy does not allow the provider upstream."
    ],
    [
      "model",
      { allowed_models: allow(["small"]) },
      {},
      {},
      "This key's policy does not allow the requested model.",
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
      "hours",
      { allowed_hours_utc: allow([8, 9]) },
      {},
      {},
      "This key's policy does not allow requests in hour 12 UTC."
    ],
    [
      "input_tokens",
      { max_input_tokens_per_request: limited(99) },
      {},
      {},
      "The request's estimated 100 input tokens exceed max_input_tokens_per_request of this key's policy."
    ],
    [
      "cost",
      { max_cost_per_request: limited(0.01) },
      {},
      {},
      "The request's estimated cost of $0.02 exceeds max_cost_per_request of this key's policy."
    ]
  ]
}

/** What takes back the policy of each rule. */
const lifted: Record<Policy.Check, Partial<KeyPolicy>> = {
  deny: { deny: false },
  route: { allowed_routes: allowAll },
  provider: { allowed_providers: allowAll },
  model: { allowed_models: allowAll },
  streaming: { allow_streaming: true },
  tools: { allow_tools: true },
  hours: { allowed_hours_utc: allowAll },
  input_tokens: { max_input_tokens_per_request: unlimited },
  cost: { max_cost_per_request: unlimited }
}

const question: fc.Arbitrary<Policy.Question> = fc.record({
  route: fc.constantFrom(...PolicyRoute.literals),
  provider: fc.constantFrom("upstream", "compat"),
  hourUtc: fc.nat(23),
  estimatedCostNanos: fc.nat(2_000_000_000),
  facts: fc.record({
    requests: fc.nat(3),
    models: fc.subarray(["small", "large"]),
    stream: fc.boolean(),
    tools: fc.boolean(),
    inputTokens: fc.nat(200),
    maxOutputTokens: fc.option(fc.nat(200), { nil: undefined }),
    guardrails: fc.subarray(["pii-redact"]),
    namesGuardrails: fc.boolean()
  })
})

const listOf = <A>(values: ReadonlyArray<A>): fc.Arbitrary<AllowList<A>> =>
  fc.option(fc.subarray([...values])).map((chosen) => (chosen === null ? allowAll : allow(chosen)))
const limit = (max: number): fc.Arbitrary<Limit> =>
  fc.option(fc.nat(max)).map((chosen) => (chosen === null ? unlimited : limited(chosen)))

const policies: fc.Arbitrary<KeyPolicy> = fc
  .record({
    deny: fc.boolean(),
    allowed_routes: listOf(PolicyRoute.literals),
    allowed_models: listOf(["small", "large"]),
    allowed_providers: listOf(["upstream", "compat"] as const),
    allowed_hours_utc: listOf([...Array(24).keys()]),
    allow_streaming: fc.boolean(),
    allow_tools: fc.boolean(),
    max_input_tokens_per_request: limit(200),
    max_cost_per_request: limit(2)
  })
  .map((policy) => ({ ...neutral, ...policy }))

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
    allowed_models: fewer(policy.allowed_models, keep, ["small", "large"])
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
