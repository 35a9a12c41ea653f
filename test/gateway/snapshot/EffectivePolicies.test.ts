import { assert, describe, it } from "@effect/vitest"
import { Option } from "effect"
import * as EffectivePolicies from "../../../src/gateway/snapshot/EffectivePolicies.ts"
import * as GuardrailPolicy from "../../../src/policy/GuardrailPolicy.ts"
import { neutral } from "../../../src/policy/KeyPolicy.ts"
import { limited } from "../../../src/policy/Limit.ts"
import { indexLayers, type PolicyLayer } from "../../../src/policy/PolicyLayer.ts"
import * as KeyRecords from "../KeyRecords.ts"

const keyOf = () => KeyRecords.recordOf({ projectId: Option.some("p") })

const layer = (kind: PolicyLayer["kind"], scopeId: string | null, rpm: number): PolicyLayer => ({
  kind,
  scopeId,
  version: 1,
  policy: { ...neutral, rpm_limit: limited(rpm) },
  guardrails: GuardrailPolicy.neutral
})

describe("the policies that keys are under", () => {
  it("stay the same objects while neither key nor layers change, also for routes and models without a layer", () => {
    const policies = EffectivePolicies.makeCache(() => 0)
    const layers = indexLayers([layer("project", "p", 5), layer("model", "large", 2)])
    const key = keyOf()
    const chat = policies(layers, key, "/v1/chat/completions", ["small"])
    assert.strictEqual(policies(layers, key, "/v1/models", []), chat)
    assert.strictEqual(policies(layers, key, "/v1/messages", ["other"]), chat)
    const large = policies(layers, key, "/v1/messages", ["large"])
    assert.notStrictEqual(large, chat)
    assert.strictEqual(policies(layers, key, "/v1/messages", ["small", "large"]), large)
    assert.deepStrictEqual([chat.policy.rpm_limit, large.policy.rpm_limit], [limited(5), limited(2)])
  })

  it("are made anew for a key or layers that changed", () => {
    const policies = EffectivePolicies.makeCache(() => 0)
    const key = keyOf()
    const before = policies(indexLayers([]), key, "/v1/models", [])
    const after = policies(indexLayers([layer("global", null, 3)]), key, "/v1/models", [])
    assert.deepStrictEqual([before.policy, after.policy.rpm_limit], [neutral, limited(3)])
    assert.notStrictEqual(
      policies(indexLayers([]), { ...key, ownLayer: { ...key.ownLayer, version: 2 } }, "/v1/models", []),
      before
    )
  })

  it("include exceptions of the key until each of them ends", () => {
    let now = 0
    const policies = EffectivePolicies.makeCache(() => now)
    const layers = indexLayers([layer("project", "p", 5)])
    const raises = [
      { id: "first", limits: { rpm_limit: 9, tpm_limit: 7 }, until: 10 },
      { id: "second", limits: { rpm_limit: 8 }, until: 20 },
      { id: "lower", limits: { rpm_limit: 4 }, until: 30 }
    ]
    const key = KeyRecords.recordOf({ projectId: Option.some("p"), raises })
    const at = (time: number) => {
      now = time
      return policies(layers, key, "/v1/models", [])
    }
    const first = at(0)
    assert.deepStrictEqual(first.policy.tpm_limit, neutral.tpm_limit)
    assert.strictEqual(at(9), first)
    const limits = [9, 10, 19, 20, 29, 30].map((time) => at(time).policy.rpm_limit)
    assert.deepStrictEqual(limits, [9, 8, 8, 5, 5, 5].map(limited))
    assert.strictEqual(at(30), at(40))
  })

  it("are not remembered without bound", () => {
    const policies = EffectivePolicies.makeCache(() => 0)
    const models = Array.from({ length: 300 }, (_, n) => `m-${n}`)
    const layers = indexLayers(models.map((model) => layer("model", model, 1)))
    const key = keyOf()
    const first = policies(layers, key, "/v1/models", ["m-0"])
    assert.strictEqual(policies(layers, key, "/v1/models", ["m-0"]), first)
    for (const model of models) policies(layers, key, "/v1/models", [model])
    assert.notStrictEqual(policies(layers, key, "/v1/models", ["m-0"]), first)
  })
})
