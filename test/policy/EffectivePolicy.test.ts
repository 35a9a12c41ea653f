import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { allow } from "../../src/policy/AllowList.ts"
import * as EffectivePolicy from "../../src/policy/EffectivePolicy.ts"
import * as GuardrailPolicy from "../../src/policy/GuardrailPolicy.ts"
import { intersection, type KeyPolicy, neutral } from "../../src/policy/KeyPolicy.ts"
import { limited, unlimited } from "../../src/policy/Limit.ts"
import * as Policy from "../../src/policy/Policy.ts"
import { applicableLayers, indexLayers, layerName, type PolicyLayer } from "../../src/policy/PolicyLayer.ts"
import * as Policies from "./Policies.ts"

describe("policies merge", () => {
  const merged = (policies: ReadonlyArray<KeyPolicy>) => policies.reduce(intersection, neutral)
  const several = fc.array(Policies.policy, { maxLength: 4 })

  it("in any order", () => {
    fc.assert(
      fc.property(several, (policies) => {
        assert.deepStrictEqual(sorted(merged(policies)), sorted(merged(policies.toReversed())))
      })
    )
  })

  it("in any grouping", () => {
    fc.assert(
      fc.property(several, several, (some, others) => {
        assert.deepStrictEqual(merged([...some, ...others]), intersection(merged(some), merged(others)))
      })
    )
  })

  it("with themselves and with the neutral one without effect", () => {
    fc.assert(
      fc.property(Policies.policy, (policy) => {
        assert.deepStrictEqual(intersection(policy, policy), policy)
        assert.deepStrictEqual(intersection(neutral, policy), policy)
        assert.deepStrictEqual(intersection(policy, neutral), policy)
      })
    )
  })

  it("so that a request is denied exactly where one of them denies it, by the first of their checks", () => {
    fc.assert(
      fc.property(several, Policies.question, (policies, asked) => {
        const question = { ...asked, facts: { ...asked.facts, guardrails: [] } }
        const passed = (policy: KeyPolicy) => Policy.decide(policy, question).passed.length
        const least = Math.min(passed(neutral), ...policies.map(passed))
        assert.strictEqual(passed(merged(policies)), least)
      }),
      { numRuns: 500 }
    )
  })

  it("the golden way: lists intersect, limits take the smaller, permissions need both", () => {
    const a = { ...neutral, allowed_models: allow(["x", "y"]), rpm_limit: limited(5), max_request_body_bytes: 10 }
    const b = { ...neutral, allowed_models: allow(["y", "z"]), rpm_limit: limited(0), allow_tools: false }
    assert.deepStrictEqual(intersection(a, b), {
      ...neutral,
      allowed_models: allow(["y"]),
      rpm_limit: limited(0),
      max_request_body_bytes: 10,
      allow_tools: false
    })
    assert.deepStrictEqual(
      intersection({ ...neutral, allowed_models: allow(["x"]) }, { ...neutral, allowed_models: allow(["z"]) })
        .allowed_models,
      allow([])
    )
  })
})

describe("guardrail policies merge", () => {
  const { merged } = GuardrailPolicy

  it("their names in any order, and with themselves or the neutral one without effect", () => {
    fc.assert(
      fc.property(Policies.guardrailPolicy, Policies.guardrailPolicy, (one, other) => {
        const a = merged(GuardrailPolicy.neutral, one)
        assert.deepStrictEqual(sets(merged(one, other)), sets(merged(other, one)))
        assert.deepStrictEqual(sets(merged(a, a)), sets(a))
        assert.deepStrictEqual(sets(merged(a, GuardrailPolicy.neutral)), sets(a))
      })
    )
  })

  it("as unions, where nothing that is forbidden stays an option", () => {
    fc.assert(
      fc.property(Policies.guardrailPolicy, Policies.guardrailPolicy, (one, other) => {
        const both = merged(one, other)
        const optional = new Set([...one.optional_guardrails, ...other.optional_guardrails])
        for (const policy of [one, other]) {
          assert.includeMembers([...both.mandatory_guardrails], [...policy.mandatory_guardrails])
          assert.includeMembers([...both.forbidden_guardrails], [...policy.forbidden_guardrails])
        }
        assert.deepStrictEqual(
          new Set(both.optional_guardrails),
          new Set([...optional].filter((name) => !both.forbidden_guardrails.includes(name)))
        )
      })
    )
  })

  it("what another policy forbids is not configured any more; a policy's own contradiction stays", () => {
    const configures = { ...GuardrailPolicy.neutral, guardrail_config_overrides: { g: { a: 1 }, h: {} } }
    const forbids = { ...GuardrailPolicy.neutral, forbidden_guardrails: ["g"] }
    for (const both of [merged(configures, forbids), merged(forbids, configures)]) {
      assert.deepStrictEqual(both.guardrail_config_overrides, { h: {} })
    }
    const itself = { ...configures, forbidden_guardrails: ["g"] }
    assert.deepStrictEqual(merged(itself, forbids).guardrail_config_overrides, { g: { a: 1 }, h: {} })
  })

  it("of two overrides the later wins whole", () => {
    const override = (config: { readonly [name: string]: number }) => ({
      ...GuardrailPolicy.neutral,
      guardrail_config_overrides: { g: config }
    })
    assert.deepStrictEqual(merged(override({ a: 1, b: 1 }), override({ a: 2 })).guardrail_config_overrides, {
      g: { a: 2 }
    })
  })
})

describe("the effective policy of a request", () => {
  const layer = (kind: PolicyLayer["kind"], scopeId: string | null, version: number): PolicyLayer => ({
    kind,
    scopeId,
    version,
    policy: { ...neutral, rpm_limit: limited(version) },
    guardrails: GuardrailPolicy.neutral
  })
  const layers = [
    layer("model", "large", 3),
    layer("global", null, 7),
    layer("project", "p", 4),
    layer("project", "q", 1),
    layer("team", "t", 5),
    layer("route", "/v1/messages", 6),
    layer("model", "small", 2)
  ]
  const under = (scope: Partial<Parameters<typeof applicableLayers>[1]>) =>
    applicableLayers(indexLayers(layers), {
      projectId: undefined,
      teamId: undefined,
      route: "/v1/models",
      models: [],
      ...scope
    })

  it("is made of the layers about its project, team, route and every model, from the general to the particular", () => {
    const all = under({ projectId: "p", teamId: "t", route: "/v1/messages", models: ["small", "other", "large"] })
    assert.deepStrictEqual(all.map(layerName), [
      "global",
      "project:p",
      "team:t",
      "route:/v1/messages",
      "model:small",
      "model:large"
    ])
    assert.deepStrictEqual(under({}).map(layerName), ["global"])
    assert.deepStrictEqual(
      applicableLayers(indexLayers([]), { projectId: "p", teamId: "t", route: "/v1/models", models: [] }),
      []
    )
  })

  it("has the highest version, the strictest limits, and the key's own policy as its last layer", () => {
    const effective = EffectivePolicy.of([...under({ models: ["small"] }), layer("key", "k", 5)])
    assert.deepStrictEqual([effective.version, effective.policy.rpm_limit], [7, limited(2)])
    assert.deepStrictEqual(effective.layers.map(layerName), ["global", "model:small", "key"])
    assert.strictEqual(effective.guardrails, GuardrailPolicy.neutral)
  })

  it("of no layer is neutral", () => {
    const { policy, version } = EffectivePolicy.of([])
    assert.deepStrictEqual([policy, version], [{ ...neutral, rpm_limit: unlimited }, 0])
  })
})

const sorted = (policy: KeyPolicy) =>
  Object.fromEntries(
    Object.entries(policy).map(([field, value]) => [
      field,
      typeof value === "object" && value !== null && value._tag === "Allow" ? value.values.map(String).sort() : value
    ])
  )

const sets = (policy: GuardrailPolicy.GuardrailPolicy) => [
  new Set(policy.mandatory_guardrails),
  new Set(policy.optional_guardrails),
  new Set(policy.forbidden_guardrails),
  policy.guardrail_config_overrides
]
