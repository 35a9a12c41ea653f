import { assert, it } from "@effect/vitest"
import { Result } from "effect"
import { GuardrailSelection } from "../../../src/control/api/policies/GuardrailCoverage.ts"
import { outcomeOf, type Selections } from "../../../src/control/policies/CoverageOutcome.ts"
import type { GuardrailCatalogue, GuardrailDefinition } from "../../../src/guardrails/Definitions.ts"
import * as Selection from "../../../src/guardrails/Selection.ts"
import * as GuardrailPolicy from "../../../src/policy/GuardrailPolicy.ts"

const policyOf = (selections: Selections): GuardrailPolicy.GuardrailPolicy => ({
  mandatory_guardrails: selections.includes("mandatory") ? ["it"] : [],
  optional_guardrails: selections.includes("optional") ? ["it"] : [],
  forbidden_guardrails: selections.includes("forbidden") ? ["it"] : [],
  guardrail_config_overrides: selections.includes("configured") ? { it: {} } : {}
})

const every = GuardrailSelection.literals.reduce<ReadonlyArray<Selections>>(
  (sets, selection) => sets.flatMap((set) => [set, [...set, selection]]),
  [[]]
)

it("the outcome of a guardrail is what the gateway does with it", () => {
  for (const enabled of [true, false])
    for (const default_on of [true, false]) {
      const definition: GuardrailDefinition = {
        name: "it",
        description: "",
        modes: ["pre_call"],
        defaultOn: default_on,
        failurePolicy: "fail_closed",
        configSchema: {},
        runtimeConfig: {},
        enabled,
        provider: { _tag: "BuiltIn" }
      }
      const catalogue: GuardrailCatalogue = new Map([["it", definition]])
      for (const layer of every)
        for (const own of every) {
          const policy = [layer, own].map(policyOf).reduce(GuardrailPolicy.merged)
          const unasked = Selection.select(catalogue, policy, [])
          const asked = Selection.select(catalogue, policy, ["it"])
          const isApplied = Result.isSuccess(unasked) && unasked.success.length > 0
          const outcome = outcomeOf([layer, own], { default_on, enabled })
          const words = JSON.stringify({ layer, own, default_on, enabled, outcome })
          assert.strictEqual(outcome === "refused", Result.isFailure(unasked), words)
          assert.strictEqual(outcome === "mandatory" || outcome === "by_default", isApplied, words)
          assert.strictEqual(outcome === "optional", !isApplied && Result.isSuccess(asked), words)
        }
    }
})
