import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import fc from "fast-check"
import type { GuardrailDefinition } from "../../src/guardrails/Definitions.ts"
import * as Selection from "../../src/guardrails/Selection.ts"
import type { Mode } from "../../src/policy/Guardrail.ts"
import { type GuardrailPolicyPatch, neutral } from "../../src/policy/GuardrailPolicy.ts"

const definition = (name: string, more: Partial<GuardrailDefinition> = {}): GuardrailDefinition => ({
  name,
  description: "",
  provider: { _tag: "BuiltIn" },
  modes: ["pre_call", "post_call"],
  defaultOn: false,
  failurePolicy: "fail_closed",
  configSchema: {},
  runtimeConfig: {},
  enabled: true,
  ...more
})
const catalogue = (...definitions: ReadonlyArray<GuardrailDefinition>) =>
  new Map(definitions.map((definition) => [definition.name, definition]))

const all = catalogue(
  definition("default", { defaultOn: true, runtimeConfig: { level: 1, deep: { a: 1, b: 2 } } }),
  definition("off", { defaultOn: true, enabled: false }),
  definition("plain"),
  definition("second")
)

/** The names that are selected, or the code of the refusal. */
const selected = (policy: GuardrailPolicyPatch, ...requested: ReadonlyArray<string>) =>
  Result.match(Selection.select(all, { ...neutral, ...policy }, requested), {
    onSuccess: (steps) => steps.map((step) => step.definition.name),
    onFailure: ({ code }) => code
  })

describe("Selection", () => {
  it.each<[string, GuardrailPolicyPatch, ReadonlyArray<string>, ReadonlyArray<string> | string]>([
    ["default-on and enabled", {}, [], ["default"]],
    ["forbidden stops default-on", { forbidden_guardrails: ["default"] }, [], []],
    ["mandatory", { mandatory_guardrails: ["second", "plain"] }, [], ["default", "second", "plain"]],
    ["each once", { mandatory_guardrails: ["default", "plain", "plain"] }, [], ["default", "plain"]],
    [
      "mandatory and forbidden",
      { mandatory_guardrails: ["plain"], forbidden_guardrails: ["plain"] },
      [],
      "guardrail_forbidden"
    ],
    ["mandatory and missing", { mandatory_guardrails: ["nobody"] }, [], "guardrail_unavailable"],
    ["mandatory and disabled", { mandatory_guardrails: ["off"] }, [], "guardrail_unavailable"],
    ["optional is not selected by itself", { optional_guardrails: ["plain"] }, [], ["default"]],
    ["optional and asked for", { optional_guardrails: ["plain"] }, ["plain", "plain"], ["default", "plain"]],
    ["asked for and not optional", {}, ["plain"], "guardrail_forbidden"],
    ["asked for and unknown", {}, ["nobody"], "guardrail_forbidden"],
    ["asked for, mandatory, not optional", { mandatory_guardrails: ["plain"] }, ["plain"], "guardrail_forbidden"],
    [
      "asked for, optional, forbidden",
      { optional_guardrails: ["plain"], forbidden_guardrails: ["plain"] },
      ["plain"],
      "guardrail_forbidden"
    ],
    ["optional and disabled", { optional_guardrails: ["off"] }, ["off"], "invalid_guardrail_request"],
    ["optional and missing", { optional_guardrails: ["nobody"] }, ["nobody"], "invalid_guardrail_request"]
  ])("%s", (_, policy, requested, expected) => assert.deepStrictEqual(selected(policy, ...requested), expected))

  it("lays a key's override shallow over the catalogue's configuration, and lets it wait where nothing selects it", () => {
    const guardrail_config_overrides = { default: { deep: { c: 3 }, more: true }, plain: { x: 1 }, toString: { y: 1 } }
    const steps = Selection.select(all, { ...neutral, guardrail_config_overrides }, [])
    assert.deepStrictEqual(
      Result.getOrThrow(steps).map(({ config }) => config),
      [{ level: 1, deep: { c: 3 }, more: true }]
    )
  })

  it("replaces the detectors of the catalogue by those of an override as a whole", () => {
    const runtimeConfig = { restore_output: true, detectors: { secret: true, payment_card: true } }
    const guardrail_config_overrides = { "pii-redact": { detectors: { phone: false } } }
    const definitions = catalogue(definition("pii-redact", { defaultOn: true, runtimeConfig }))
    const steps = Selection.select(definitions, { ...neutral, guardrail_config_overrides }, [])
    assert.deepStrictEqual(
      Result.getOrThrow(steps).map(({ config }) => config),
      [{ restore_output: true, detectors: { phone: false } }]
    )
  })

  it("runs a guardrail in the modes that it declares, and skips it in any other", () => {
    const modes: ReadonlyArray<ReadonlyArray<Mode>> = [["pre_call"], ["post_call"], ["during_call"], []]
    const steps = modes.map((modes) => ({ definition: definition(modes.join(), { modes }), config: {} }))
    const names = (selection: Selection.Selection) => selection.map((step) => step.definition.name)
    assert.deepStrictEqual(names(Selection.inMode(steps, "pre_call")), ["pre_call"])
    assert.deepStrictEqual(names(Selection.inMode(steps, "post_call")), ["post_call"])
    assert.deepStrictEqual(names(Selection.ofResponses(steps)), ["post_call", "during_call"])
  })

  it("is told once for a policy, and anew with a new catalogue", () => {
    const usual = Selection.makeCachedSelect()
    const policy = { ...neutral, mandatory_guardrails: ["plain"] }
    assert.strictEqual(usual(all, policy), usual(all, policy))
    assert.notStrictEqual(usual(all, policy), usual(catalogue(definition("plain")), policy))
    assert.notStrictEqual(usual(all, policy), usual(all, neutral))
  })

  const names = fc.subarray(["default", "off", "plain", "second", "nobody"])

  it("nothing forbidden runs, nothing mandatory is missing, nothing runs that nobody chose", () => {
    fc.assert(
      fc.property(names, names, names, names, (mandatory, optional, forbidden, requested) => {
        const chosen = selected(
          { mandatory_guardrails: mandatory, optional_guardrails: optional, forbidden_guardrails: forbidden },
          ...requested
        )
        if (typeof chosen === "string") return
        assert.strictEqual(new Set(chosen).size, chosen.length)
        assert.deepStrictEqual(
          chosen.filter((name) => forbidden.includes(name)),
          []
        )
        assert.includeMembers([...chosen], [...mandatory, ...requested])
        assert.includeMembers(["default", ...mandatory, ...requested], [...chosen])
        assert.includeMembers(optional, requested)
      }),
      { numRuns: 1000 }
    )
  })
})
