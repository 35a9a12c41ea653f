import type { PolicyValues } from "../../../shared/policy/fields.ts"
import type { Proposal } from "../../../shared/policy/Impact.tsx"
import { isStored, type Layer, type LayerKind, type LayerUpsert, type NewLayer, upsertOf } from "../words/layer.ts"
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
}

const kinds: ReadonlyArray<LayerKind> = ["global", "project", "team", "route", "model"]

export const proposalFor = (kind: string | undefined, scope: string | undefined): ProposalDraft => ({
  what: kind === undefined ? "nothing" : "layer",
  kind: kinds.find((one) => one === kind) ?? "team",
  scope: scope ?? "",
  layer: undefined,
  policy: {}
})

export const hasScope = ({ kind, scope }: ProposalDraft): boolean => kind === "global" || scope !== ""

export const isProposed = (draft: ProposalDraft): boolean =>
  Object.keys(draft.policy).length > 0 &&
  (draft.what === "key" || (draft.what === "layer" && draft.layer !== undefined))

/** The layer as it would be: what is stored, with the changes. */
export const layerOf = ({ kind, layer, policy, scope }: ProposalDraft): LayerUpsert => {
  const stored = layer !== undefined && isStored(layer) ? upsertOf(layer) : undefined
  return {
    kind,
    ...(kind !== "global" && { scope_id: scope }),
    ...stored,
    policy: { ...stored?.policy, ...policy }
  }
}

/** What the change adds to a simulation. */
export const simulationOf = (draft: ProposalDraft): Partial<Simulation> =>
  !isProposed(draft) ? {} : draft.what === "key" ? { policy: draft.policy } : { layer: layerOf(draft) }

/** What is asked about whom the change hits. */
export const impactOf = (draft: ProposalDraft, { key_id }: RequestDraft): Proposal | undefined =>
  !isProposed(draft)
    ? undefined
    : draft.what === "layer"
      ? { layer: layerOf(draft) }
      : key_id === undefined
        ? undefined
        : { key_id, policy: draft.policy }
