import { Schema } from "effect"
import type { UsageRoute } from "./CanonicalRoute.ts"
import * as GuardrailPolicy from "./GuardrailPolicy.ts"
import { type KeyPolicy, KeyPolicyPatch, neutral, patched } from "./KeyPolicy.ts"

/**
 * What a stored layer is about, from the general to the particular (reference §8.2). A key's own policy comes behind
 * them.
 */
export const LayerKind = Schema.Literals(["global", "project", "team", "route", "model"])
export type LayerKind = typeof LayerKind.Type

/** One of the policies that a request is under. */
export interface PolicyLayer {
  readonly kind: LayerKind | "key"
  /** The project, team, route, model or key; `null` for the global layer, and for the policy of no stored key. */
  readonly scopeId: string | null
  readonly version: number
  readonly policy: KeyPolicy
  readonly guardrails: GuardrailPolicy.GuardrailPolicy
}

/** The layers that there are, where the request path finds those of a request. */
export interface PolicyLayers {
  /** No layer at all: every key has its own policy and nothing else. */
  readonly empty: boolean
  readonly of: { readonly [Kind in LayerKind]: ReadonlyMap<string, PolicyLayer> }
}

/** What a request is about, as far as layers go by it. */
export interface LayerScope {
  readonly projectId: string | undefined
  readonly teamId: string | undefined
  readonly route: UsageRoute
  /** Every one of them: a message batch is under the layers of all its models. */
  readonly models: ReadonlyArray<string>
}

export const indexed = (layers: ReadonlyArray<PolicyLayer>): PolicyLayers => {
  const of = {
    global: new Map<string, PolicyLayer>(),
    project: new Map<string, PolicyLayer>(),
    team: new Map<string, PolicyLayer>(),
    route: new Map<string, PolicyLayer>(),
    model: new Map<string, PolicyLayer>()
  }
  for (const layer of layers) if (layer.kind !== "key") of[layer.kind].set(layer.scopeId ?? "", layer)
  return { empty: layers.length === 0, of }
}

export const none = indexed([])

/** The layers that a request is under, in their order. None is as good as a neutral one. */
export const applying = (layers: PolicyLayers, scope: LayerScope): ReadonlyArray<PolicyLayer> =>
  layers.empty
    ? []
    : [
        ...everywhere(layers, scope),
        layers.of.route.get(scope.route),
        ...scope.models.map((model) => layers.of.model.get(model))
      ].filter((layer) => layer !== undefined)

type OwnerScope = Pick<LayerScope, "projectId" | "teamId">

/** What every request of a key is under, whatever it asks for. */
const everywhere = (
  { of }: PolicyLayers,
  { projectId, teamId }: OwnerScope
): ReadonlyArray<PolicyLayer | undefined> => [
  of.global.get(""),
  projectId === undefined ? undefined : of.project.get(projectId),
  teamId === undefined ? undefined : of.team.get(teamId)
]

/** Of a key's requests, those that count: all, or those to these routes and with these models. */
export type Counted = "all" | { readonly routes: ReadonlyArray<string>; readonly models: ReadonlyArray<string> }

/** What a key's counter counts: the requests under a layer, or a policy of the key's own, that `limits`. */
export const counted = (
  layers: PolicyLayers,
  owner: OwnerScope,
  own: KeyPolicy,
  limits: (policy: KeyPolicy) => boolean
): Counted => {
  if (limits(own) || everywhere(layers, owner).some((layer) => layer !== undefined && limits(layer.policy)))
    return "all"
  const limiting = (scopes: ReadonlyMap<string, PolicyLayer>) =>
    [...scopes].filter(([, { policy }]) => limits(policy)).map(([scope]) => scope)
  return { routes: limiting(layers.of.route), models: limiting(layers.of.model) }
}

/** How a layer is called in usage records and explanations: `global`, `key`, `project:<id>`, `model:<name>`. */
export const nameOf = ({ kind, scopeId }: PolicyLayer): string =>
  kind === "global" || kind === "key" || scopeId === null ? kind : `${kind}:${scopeId}`

/** A row of `policy_layers`: what its policies leave out is neutral. */
export const LayerRow = Schema.Struct({
  layer_kind: LayerKind,
  scope_id: Schema.NullOr(Schema.String),
  policy: KeyPolicyPatch,
  guardrail_policy: GuardrailPolicy.GuardrailPolicyPatch,
  policy_version: Schema.FiniteFromString
})

export const fromRow = (row: typeof LayerRow.Type): PolicyLayer => ({
  kind: row.layer_kind,
  scopeId: row.scope_id,
  version: row.policy_version,
  policy: patched(neutral, row.policy),
  guardrails: GuardrailPolicy.of(row.guardrail_policy)
})
