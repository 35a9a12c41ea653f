import { Schema } from "effect"
import type { PolicyRoute } from "./routes/CanonicalRoute.ts"
import type * as SharedLimits from "./SharedLimits.ts"
import type { Policies } from "./StoredPolicies.ts"

/**
 * What a stored layer is about, from the general to the particular. A key's own policy comes behind
 * them.
 */
export const LayerKind = Schema.Literals(["global", "project", "team", "route", "model"])
export type LayerKind = typeof LayerKind.Type

/** One of the policies that a request is under. */
export interface PolicyLayer extends Policies {
  /** `unknown`: a layer of a kind that this version does not know. It may be about any request, so it is about all. */
  readonly kind: LayerKind | "key" | "unknown"
  /**
   * The project, team, route, model or key; `null` for the global layer, and for the policy of no stored key. Of an
   * unknown kind, kind and scope.
   */
  readonly scopeId: string | null
  readonly version: number
  /** This version cannot decode the row, so the layer denies every request that is under it. */
  readonly unreadable?: true
  /** When each limit of `policy` was set. Absent: before changes were numbered. */
  readonly since?: SharedLimits.Since
  /** What all requests under the layer share. Absent: nothing. */
  readonly shared?: { readonly limits: SharedLimits.SharedLimits; readonly since: SharedLimits.Since }
}

/** The layers that there are, where the request path finds those of a request. */
export interface PolicyLayers {
  /** No layer at all: every key has its own policy and nothing else. */
  readonly empty: boolean
  readonly of: { readonly [Kind in LayerKind]: ReadonlyMap<string, PolicyLayer> }
  /** Of kinds that this version does not know: about every request. */
  readonly unknown: ReadonlyArray<PolicyLayer>
}

/** What a request is about, as far as layers go by it. */
export interface LayerScope {
  readonly projectId: string | undefined
  readonly teamId: string | undefined
  readonly route: PolicyRoute
  /** Every one of them: a message batch is under the layers of all its models. */
  readonly models: ReadonlyArray<string>
}

export const indexLayers = (layers: ReadonlyArray<PolicyLayer>): PolicyLayers => {
  const of = {
    global: new Map<string, PolicyLayer>(),
    project: new Map<string, PolicyLayer>(),
    team: new Map<string, PolicyLayer>(),
    route: new Map<string, PolicyLayer>(),
    model: new Map<string, PolicyLayer>()
  }
  for (const layer of layers) {
    if (layer.kind !== "key" && layer.kind !== "unknown") of[layer.kind].set(layer.scopeId ?? "", layer)
  }
  return { empty: layers.length === 0, of, unknown: layers.filter(({ kind }) => kind === "unknown") }
}

export const noLayers = indexLayers([])

/** The layers that a request is under, in their order. None is as good as a neutral one. */
export const applicableLayers = (layers: PolicyLayers, scope: LayerScope): ReadonlyArray<PolicyLayer> =>
  layers.empty
    ? []
    : [
        ...ownerLayers(layers, scope),
        layers.of.route.get(scope.route),
        ...scope.models.map((model) => layers.of.model.get(model))
      ].filter((layer) => layer !== undefined)

export type OwnerScope = Pick<LayerScope, "projectId" | "teamId">

/** What every request of a key is under, whatever it asks for. */
export const ownerLayers = (
  { of, unknown }: PolicyLayers,
  { projectId, teamId }: OwnerScope
): ReadonlyArray<PolicyLayer | undefined> => [
  ...unknown,
  of.global.get(""),
  projectId === undefined ? undefined : of.project.get(projectId),
  teamId === undefined ? undefined : of.team.get(teamId)
]

/** Of a key's requests, those that count: all, or those to these routes and with these models. */
export type CountedRequests = "all" | { readonly routes: ReadonlyArray<string>; readonly models: ReadonlyArray<string> }

/** What a counter counts, and the number of the change since which it counted every such request. */
export interface CountedSince {
  readonly counted: CountedRequests
  readonly since: number
}

/** Whose key it is. `since`: the number of the change that moved it there. */
export interface KeyOwner extends OwnerScope {
  readonly since: number
}

/**
 * What a key's counter for the limit `field` counts: everything, where the key's own policy or a layer over all its
 * requests sets the limit, since the oldest of these; else the requests under the route and model layers that set it,
 * since the youngest of them.
 */
export const countedRequests = (
  layers: PolicyLayers,
  owner: KeyOwner,
  own: Pick<PolicyLayer, "kind" | "policy" | "since">,
  field: SharedLimits.LimitField
): CountedSince => {
  const limits = ({ policy }: Pick<PolicyLayer, "policy">) => policy[field]._tag === "Limited"
  const sinceOf = ({ kind, since }: Pick<PolicyLayer, "kind" | "since">): number =>
    Math.max(since?.[field] ?? 0, kind === "project" || kind === "team" ? owner.since : 0)
  const coveringAll = [own, ...ownerLayers(layers, owner)].filter((layer) => layer !== undefined).filter(limits)
  if (coveringAll.length > 0) return { counted: "all", since: Math.min(...coveringAll.map(sinceOf)) }
  const limiting = (scopes: ReadonlyMap<string, PolicyLayer>) => [...scopes].filter(([, layer]) => limits(layer))
  const [routes, models] = [limiting(layers.of.route), limiting(layers.of.model)]
  return {
    counted: { routes: routes.map(([route]) => route).sort(), models: models.map(([model]) => model).sort() },
    since: [...routes, ...models].reduce((latest, [, layer]) => Math.max(latest, sinceOf(layer)), 0)
  }
}

/**
 * How a layer is called in usage records and explanations: `global`, `key`, `project:<id>`, `model:<name>`, and
 * `team:<name> (unreadable)` where the layer denies because its row cannot be decoded.
 */
export const layerName = ({ kind, scopeId, unreadable }: PolicyLayer): string => {
  const name = kind === "global" || kind === "key" || scopeId === null ? kind : `${kind}:${scopeId}`
  return unreadable === true ? `${name} (unreadable)` : name
}

/** How a refusal calls a limit that all requests under a layer share. */
export const sharedLimitName = ({ kind, scopeId }: PolicyLayer, field: SharedLimits.LimitField): string =>
  `shared ${field} of ${kind === "global" ? "all keys" : `${kind} ${scopeId ?? ""}`}`

/** Why an unreadable layer denies, for operators. */
export const unreadableLayerMessage =
  "This version of the program cannot decode the stored policy, so it denies every request that is under it. Update the program, or save the policy again."
