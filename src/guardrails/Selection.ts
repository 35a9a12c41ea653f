import { Result } from "effect"
import type { Config, Mode } from "../policy/Guardrail.ts"
import type { GuardrailPolicy } from "../policy/GuardrailPolicy.ts"
import type { GuardrailCatalogue, GuardrailDefinition, HttpProvider } from "./Definitions.ts"

/** A guardrail that a request must pass. `config` is the catalogue's configuration, overridden by the key's policy. */
export interface SelectedGuardrail {
  readonly definition: GuardrailDefinition
  readonly config: Config
}

export type Selection = ReadonlyArray<SelectedGuardrail>

/** A selected guardrail that runs on a server of its own. */
export interface HttpStep extends SelectedGuardrail {
  readonly definition: GuardrailDefinition & { readonly provider: HttpProvider }
}

export const isHttp = (step: SelectedGuardrail): step is HttpStep => step.definition.provider._tag === "Http"

/** The reason to refuse a request whose guardrails cannot be determined. */
export interface SelectionRefusal {
  readonly code: "guardrail_forbidden" | "guardrail_unavailable" | "invalid_guardrail_request"
  readonly message: string
  readonly param?: "background" | "guardrails"
}

/**
 * Selects each guardrail once, in this order: on by default (sorted by name, without forbidden ones), mandatory in the
 * policy, requested by the client. A client may request only guardrails that the policy lists as optional. If the
 * policy forbids a guardrail and also demands or configures it, the request is refused.
 */
export const select = (
  definitions: GuardrailCatalogue,
  policy: GuardrailPolicy,
  requested: ReadonlyArray<string>
): SelectionResult => {
  const { forbidden_guardrails, guardrail_config_overrides, mandatory_guardrails, optional_guardrails } = policy
  const forbidden = new Set(forbidden_guardrails)
  const selected = new Map<string, SelectedGuardrail>()
  const add = (definition: GuardrailDefinition) => {
    const override = Object.hasOwn(guardrail_config_overrides, definition.name)
      ? guardrail_config_overrides[definition.name]
      : undefined
    if (selected.has(definition.name)) return
    const config = override === undefined ? definition.runtimeConfig : overridden(definition.runtimeConfig, override)
    selected.set(definition.name, { definition, config })
  }
  for (const name of Object.keys(guardrail_config_overrides)) {
    if (forbidden.has(name)) return Result.fail(configuredButForbidden(name))
  }
  for (const definition of definitions.values()) {
    if (!definition.defaultOn || forbidden.has(definition.name)) continue
    if (definition.unreadable === true) return Result.fail(unreadable(definition.name))
    if (definition.enabled) add(definition)
  }
  for (const name of mandatory_guardrails) {
    if (forbidden.has(name)) return Result.fail(mandatoryButForbidden(name))
    const definition = definitions.get(name)
    if (definition?.enabled !== true) return Result.fail(unavailable(name))
    add(definition)
  }
  const optional = new Set(optional_guardrails)
  for (const name of requested) {
    if (forbidden.has(name) || !optional.has(name)) return Result.fail(notOffered)
    const definition = definitions.get(name)
    if (definition?.enabled !== true) return Result.fail(notInCatalogue)
    add(definition)
  }
  return Result.succeed([...selected.values()])
}

/**
 * A member of the override replaces the catalogue's member as a whole, also `detectors`. Returns the same object for the
 * same configurations, because guardrails cache what they compile from it.
 */
const overridden = (config: Config, override: Config): Config => {
  const known = overriddenConfigs.get(config) ?? new WeakMap<Config, Config>()
  const merged = known.get(override) ?? { ...config, ...override }
  overriddenConfigs.set(config, known.set(override, merged))
  return merged
}

const overriddenConfigs = new WeakMap<Config, WeakMap<Config, Config>>()

export const inMode = (selection: Selection, mode: Mode): Selection =>
  selection.filter(({ definition }) => definition.modes.includes(mode))

/** The guardrails that must read a response, whether it is streamed or not. */
export const ofResponses = (selection: Selection): Selection =>
  selection.filter(({ definition: { modes } }) => modes.includes("post_call") || modes.includes("during_call"))

/** Refuses a background response that a selected guardrail must read. */
export const forRequest = (
  selected: SelectionResult,
  { background }: { readonly background: boolean }
): SelectionResult => {
  if (Result.isFailure(selected) || !background) return selected
  const [reader] = ofResponses(selected.success)
  return reader === undefined ? selected : Result.fail(cannotRunInBackground(reader.definition.name))
}

export type SelectionResult = Result.Result<Selection, SelectionRefusal>

/** Caches, per policy and catalogue, the selection for requests that name no guardrail. */
export const makeCachedSelect = () => {
  const byCatalogue = new WeakMap<GuardrailCatalogue, WeakMap<GuardrailPolicy, SelectionResult>>()
  return (definitions: GuardrailCatalogue, policy: GuardrailPolicy): SelectionResult => {
    let byPolicy = byCatalogue.get(definitions)
    if (byPolicy === undefined) {
      byPolicy = new WeakMap()
      byCatalogue.set(definitions, byPolicy)
    }
    const cached = byPolicy.get(policy)
    if (cached !== undefined) return cached
    const selected = select(definitions, policy, [])
    byPolicy.set(policy, selected)
    return selected
  }
}

const mandatoryButForbidden = (name: string): SelectionRefusal => ({
  code: "guardrail_forbidden",
  message: `This key's policy both demands and forbids the guardrail ${name}. Ask an operator to correct the policy.`
})

const configuredButForbidden = (name: string): SelectionRefusal => ({
  code: "guardrail_forbidden",
  message: `This key's policy both configures and forbids the guardrail ${name}. Ask an operator to correct the policy.`
})

const unavailable = (name: string): SelectionRefusal => ({
  code: "guardrail_unavailable",
  message: `This key's policy demands the guardrail ${name}, which is disabled or not in the catalogue. Ask an operator to enable it or to correct the policy.`
})

const unreadable = (name: string): SelectionRefusal => ({
  code: "guardrail_unavailable",
  message: `Every request must pass the guardrail ${name}, but this version of the gateway cannot decode its catalogue entry. Ask an operator to update the gateway or to save the guardrail again.`
})

const cannotRunInBackground = (name: string): SelectionRefusal => ({
  code: "invalid_guardrail_request",
  message: `The guardrail ${name} must read the response, so the response cannot be created in the background and fetched later. Send the request without "background": true.`,
  param: "background"
})

const notOffered: SelectionRefusal = {
  code: "guardrail_forbidden",
  message:
    'This key\'s policy does not offer every guardrail that "guardrails" requests. Ask an operator which guardrails the policy offers.',
  param: "guardrails"
}

const notInCatalogue: SelectionRefusal = {
  code: "invalid_guardrail_request",
  message:
    'A guardrail that "guardrails" requests is disabled or not in the catalogue. Check its name, or ask an operator to enable it.',
  param: "guardrails"
}
