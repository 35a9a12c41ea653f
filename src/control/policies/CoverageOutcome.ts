import * as GuardrailPolicy from "../../policy/GuardrailPolicy.ts"
import type { CoverageOutcome, GuardrailSelection } from "../api/policies/GuardrailCoverage.ts"

/** The words of one policy about the guardrail. A policy that does not name it has none. */
export type Selections = ReadonlyArray<GuardrailSelection>

/** The entry of the catalogue decides together with the policies. */
export interface CatalogueEntry {
  readonly default_on: boolean
  readonly enabled: boolean
}

/** Says what `Selection.select` does with the guardrail for the requests to which these policies apply, the general ones first. */
export const outcomeOf = (
  policies: ReadonlyArray<Selections>,
  { default_on, enabled }: CatalogueEntry
): CoverageOutcome => {
  const policy = policies.map(policyOf).reduce(GuardrailPolicy.merged, GuardrailPolicy.neutral)
  const isForbidden = policy.forbidden_guardrails.includes(name)
  const isMandatory = policy.mandatory_guardrails.includes(name)
  const isConfigured = Object.hasOwn(policy.guardrail_config_overrides, name)
  if (isForbidden) return isMandatory || isConfigured ? "refused" : "forbidden"
  if (isMandatory) return enabled ? "mandatory" : "refused"
  if (!enabled) return "none"
  if (default_on) return "by_default"
  return policy.optional_guardrails.includes(name) ? "optional" : "none"
}

/** The outcome does not depend on the name. */
const name = "guardrail"

const policyOf = (selections: Selections): GuardrailPolicy.GuardrailPolicy => ({
  mandatory_guardrails: selections.includes("mandatory") ? [name] : [],
  optional_guardrails: selections.includes("optional") ? [name] : [],
  forbidden_guardrails: selections.includes("forbidden") ? [name] : [],
  guardrail_config_overrides: selections.includes("configured") ? { [name]: {} } : {}
})
