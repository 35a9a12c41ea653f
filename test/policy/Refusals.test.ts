import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as EffectivePolicy from "../../src/policy/EffectivePolicy.ts"
import * as Facts from "../../src/policy/facts/Facts.ts"
import * as GuardrailPolicy from "../../src/policy/GuardrailPolicy.ts"
import { type KeyPolicy, neutral } from "../../src/policy/KeyPolicy.ts"
import type { PolicyRequest } from "../../src/policy/Policy.ts"
import type { PolicyLayer } from "../../src/policy/PolicyLayer.ts"
import * as Refusals from "../../src/policy/Refusals.ts"
import type { Target } from "../../src/policy/Routing.ts"
import * as SharedLimits from "../../src/policy/SharedLimits.ts"
import { policed, seededWith } from "../gateway/Snapshots.ts"

const question: PolicyRequest = {
  route: "/v1/chat/completions",
  provider: "upstream",
  worksLater: false,
  facts: Facts.noFacts,
  requestBytes: 0,
  responseBytes: undefined,
  hourUtc: 0,
  running: 1,
  estimatedCostNanos: 0,
  unpricedModels: []
}

const layer = (kind: PolicyLayer["kind"], scopeId: string | null, policy: Partial<KeyPolicy> = {}): PolicyLayer => ({
  kind,
  scopeId,
  version: 1,
  policy: { ...neutral, ...policy },
  guardrails: GuardrailPolicy.neutral
})

const denying = layer("global", null, { deny: true })
const open = EffectivePolicy.of([layer("key", "k")])
const closed = EffectivePolicy.of([denying, layer("key", "k")])
const noModels = new Map<string, PolicyLayer>()

const whole: Target = policed("POST", "/v1/chat/completions?model=m")
const off: Target = { ...whole, config: { ...whole.config, enabled: false } }

describe("Refusals before the body", () => {
  const full = () => "full"

  it("come in one order: the route, its query, the policy, the limits, the model that is asked about", () => {
    const model = policed("GET", "/v1/models/large", seededWith())
    const models = new Map([["large", layer("model", "large", { deny: true })]])
    const refused = (method: string, target: Target, effective = closed, room: () => string | undefined = full) => {
      const refusal = Refusals.beforeBody(method, target, effective, question, models, room)
      return typeof refusal === "string" ? refusal : (refusal?.code ?? "none")
    }
    const room = () => undefined
    assert.deepStrictEqual(
      [
        refused("POST", off),
        refused("POST", whole),
        refused("GET", model),
        refused("GET", model, open),
        refused("GET", model, open, room),
        refused("GET", { ...model, model: "small" }, open, room)
      ],
      ["disabled_route", "invalid_request_body", "policy_denied", "full", "object_not_found", "none"]
    )
  })

  it("name the layers that deny", () => {
    const refusal = Refusals.beforeBody("GET", policed("GET", "/v1/models"), closed, question, noModels)
    assert.deepStrictEqual(refusal?.denial, { check: "deny", causes: [denying] })
  })
})

describe("Refusals after the body", () => {
  const later = { ...question, worksLater: true }
  const sharing: PolicyLayer = {
    ...layer("team", "blue"),
    shared: {
      limits: SharedLimits.of({ rpm_limit: { _tag: "Limited", max: 1 }, tpm_limit: { _tag: "Limited", max: 9 } }),
      since: {}
    }
  }
  const unguardable = Result.fail({ code: "guardrail_unavailable", message: "gone" } as const)
  const guarded = Result.succeed({ inspectsResponse: true })
  const models = new Map([["m", layer("model", "m")]])

  it("come in one order: the policy, limits on later work, guardrails, what later work escapes", () => {
    const shared = EffectivePolicy.of([sharing])
    const denial = (refusal: Refusals.PolicyRefusal | undefined) => [refusal?.code, refusal?.denial?.check]
    assert.deepStrictEqual(denial(Refusals.afterBody(closed, later, models, unguardable)), ["policy_denied", "deny"])
    assert.deepStrictEqual(Refusals.afterBody(shared, later, models, unguardable)?.denial, {
      check: "shared_tpm_limit",
      causes: [sharing]
    })
    assert.deepStrictEqual(denial(Refusals.afterBody(shared, question, models, unguardable)), [
      "guardrail_unavailable",
      undefined
    ])
    for (const [of, guard, reason] of [
      [models, guarded, "model policies"],
      [noModels, guarded, "a guardrail on responses"]
    ] as const) {
      const refusal = Refusals.afterBody(open, later, of, guard)
      assert.deepStrictEqual(denial(refusal), ["policy_denied", "later_work"])
      assert.include(refusal?.message, `The gateway cannot enforce ${reason} on this path,`)
      assert.isUndefined(Refusals.afterBody(open, question, of, guard))
    }
    assert.isUndefined(Refusals.afterBody(open, later, noModels, Result.succeed(undefined)))
  })

  it("call a shared limit as the limits themselves do", () => {
    const refusal = Refusals.byPolicy(EffectivePolicy.of([sharing]), later)
    assert.include(refusal?.message, "The gateway cannot enforce shared tpm_limit of team blue on this path,")
  })
})
