import { Result } from "effect"
import type { Config, Mode } from "../policy/Guardrail.ts"
import type { GuardrailPolicy } from "../policy/GuardrailPolicy.ts"
import type { GuardrailCatalogue, GuardrailDefinition } from "./Definitions.ts"

/** A selected guardrail, and its configuration for this key: the catalogue's, with the key's override laid over it. */
export interface SelectedGuardrail {
  readonly definition: GuardrailDefinition
  readonly config: Config
}

/** What guards a request, in the order of running. */
export type Selection = ReadonlyArray<SelectedGuardrail>

/** Why a request cannot be guarded as it must. */
export interface SelectionRefusal {
  readonly code: "guardrail_forbidden" | "guardrail_unavailable" | "invalid_guardrail_request"
  readonly message: string
  /** The field of the request that is to blame. */
  readonly param?: "background" | "guardrails" | "stream"
}

/**
 * Reference §7.3, in its order: default-on guardrails by name (but for forbidden ones), the policy's mandatory ones,
 * those that the client asks for. Each comes once. A client may ask only for what the policy offers as optional. A policy
 * that configures what it forbids contradicts itself, as one does that demands it.
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
    const config = override === undefined ? definition.runtimeConfig : { ...definition.runtimeConfig, ...override }
    if (!selected.has(definition.name)) selected.set(definition.name, { definition, config })
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

/** A guardrail runs in the modes that it declares; in any other it has nothing to say. */
export const inMode = (selection: Selection, mode: Mode): Selection =>
  selection.filter(({ definition }) => definition.modes.includes(mode))

/** The first guardrail that wants to see the answer. A stream cannot be shown to it, so there must be no stream. */
export const findResponseGuardrail = (selection: Selection): SelectedGuardrail | undefined =>
  selection.find(({ definition }) => definition.modes.includes("post_call") || definition.modes.includes("during_call"))

/** How the answer comes, as far as a guardrail's view of it goes. */
export interface ResponseDelivery {
  readonly stream: boolean
  readonly background: boolean
}

/**
 * What guards a request, or why it cannot go. A guardrail that has to see the answer cannot while it streams, nor when
 * it is fetched later by another request, and nothing passes without it.
 */
export const forRequest = (selected: SelectionResult, { background, stream }: ResponseDelivery): SelectionResult => {
  const reader =
    (background || stream) && Result.isSuccess(selected) ? findResponseGuardrail(selected.success) : undefined
  if (reader === undefined) return selected
  const { name } = reader.definition
  return Result.fail(background ? cannotRunInBackground(name) : cannotStream(name))
}

export type SelectionResult = Result.Result<Selection, SelectionRefusal>

/** What a policy selects without the client's word: told once for each policy, as long as the catalogue stays. */
export const makeCachedSelect = () => {
  const byCatalogue = new WeakMap<GuardrailCatalogue, WeakMap<GuardrailPolicy, SelectionResult>>()
  return (definitions: GuardrailCatalogue, policy: GuardrailPolicy): SelectionResult => {
    let byPolicy = byCatalogue.get(definitions)
    if (byPolicy === undefined) {
      byPolicy = new WeakMap()
      byCatalogue.set(definitions, byPolicy)
    }
    const known = byPolicy.get(policy)
    if (known !== undefined) return known
    const made = select(definitions, policy, [])
    byPolicy.set(policy, made)
    return made
  }
}

const mandatoryButForbidden = (name: string): SelectionRefusal => ({
  code: "guardrail_forbidden",
  message: `This key's policy both demands and forbids the guardrail ${name}. An operator can mend it.`
})

const configuredButForbidden = (name: string): SelectionRefusal => ({
  code: "guardrail_forbidden",
  message: `This key's policy both configures and forbids the guardrail ${name}. An operator can mend it.`
})

const unavailable = (name: string): SelectionRefusal => ({
  code: "guardrail_unavailable",
  message: `This key's policy demands the guardrail ${name}, which is disabled or not in the catalogue. An operator can mend it.`
})

const unreadable = (name: string): SelectionRefusal => ({
  code: "guardrail_unavailable",
  message: `Every request must pass the guardrail ${name}, whose entry this version of the gateway cannot decode. An operator can update the gateway, or save the guardrail again.`
})

const cannotStream = (name: string): SelectionRefusal => ({
  code: "guardrail_unavailable",
  message: `The guardrail ${name} has to see the whole answer, and cannot while it streams. Send the request without "stream": true.`,
  param: "stream"
})

const cannotRunInBackground = (name: string): SelectionRefusal => ({
  code: "invalid_guardrail_request",
  message: `The guardrail ${name} has to see the answer, and cannot when it is made in the background and fetched later. Send the request without "background": true.`,
  param: "background"
})

const notOffered: SelectionRefusal = {
  code: "guardrail_forbidden",
  message: 'This key\'s policy does not offer every guardrail that "guardrails" asks for.',
  param: "guardrails"
}

const notInCatalogue: SelectionRefusal = {
  code: "invalid_guardrail_request",
  message: 'A guardrail that "guardrails" asks for is disabled or not in the catalogue.',
  param: "guardrails"
}
