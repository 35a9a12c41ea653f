import type { PolicyValues } from "../../../shared/policy/fields.ts"
import type { Proposal } from "../../../shared/policy/Impact.tsx"
import { type Layer, type LayerKind, type LayerPatch, type NewLayer, proposedOf } from "../words/layer.ts"
import type { RequestDraft, Simulation } from "./request.ts"

/** A change that is not made: of the key's own policy, or of a layer. */
export interface ProposalDraft {
  readonly what: "nothing" | "key" | "layer"
  readonly kind: LayerKind
  readonly scope: string
  /** The layer of that scope, or that there is none. `undefined` until the server has said so. */
  readonly layer: Layer | NewLayer | undefined
  /** The fields that change. */
  readonly policy: PolicyValues
  /** The limits that the keys under the layer share, as far as they change. */
  readonly shared: PolicyValues
  /** The lists of guardrails that the layer selects, as far as they change. Each is a whole list. */
  readonly guardrails: PolicyValues
}

export const noChanges = { policy: {}, shared: {}, guardrails: {} } as const

const kinds: ReadonlyArray<LayerKind> = ["global", "project", "team", "route", "model"]

export const proposalFor = (kind: string | undefined, scope: string | undefined): ProposalDraft => ({
  what: kind === undefined ? "nothing" : "layer",
  kind: kinds.find((one) => one === kind) ?? "team",
  scope: scope ?? "",
  layer: undefined,
  ...noChanges
})

export const hasScope = ({ kind, scope }: ProposalDraft): boolean => kind === "global" || scope !== ""

const isSet = (values: object): boolean => Object.keys(values).length > 0

/** Returns the fields of the layer that change. */
export const changesOf = ({ guardrails, policy, shared }: ProposalDraft): LayerPatch => ({
  ...(isSet(policy) && { policy }),
  ...(isSet(shared) && { shared }),
  ...(isSet(guardrails) && { guardrail_policy: guardrails })
})

export const isProposed = (draft: ProposalDraft): boolean =>
  draft.what === "key"
    ? isSet(draft.policy)
    : draft.what === "layer" && draft.layer !== undefined && isSet(changesOf(draft))

/** The layer as it would be: what is stored, with the changes. */
const layerOf = (draft: ProposalDraft) =>
  draft.what === "layer" && draft.layer !== undefined && isProposed(draft)
    ? proposedOf(draft.layer, changesOf(draft))
    : undefined

/** What the change adds to a simulation. */
export const simulationOf = (draft: ProposalDraft): Partial<Simulation> => {
  const layer = layerOf(draft)
  if (layer !== undefined) return { layer }
  return draft.what === "key" && isProposed(draft) ? { policy: draft.policy } : {}
}

/** What is asked about whom the change hits. */
export const impactOf = (draft: ProposalDraft, { key_id }: RequestDraft): Proposal | undefined => {
  const layer = layerOf(draft)
  if (layer !== undefined) return { layer }
  return draft.what === "key" && isProposed(draft) && key_id !== undefined
    ? { key_id, policy: draft.policy }
    : undefined
}
