import { Schema } from "effect"
import type { PolicyRoute } from "./routes/CanonicalRoute.ts"
import type * as SharedLimits from "./SharedLimits.ts"
import type { Policies } from "./StoredPolicies.ts"

/** The kinds of policies that apply to many keys, from general to specific. A key's own policy comes after them. */
export const LayerKind = Schema.Literals(["global", "project", "team", "route", "model"])
export type LayerKind = typeof LayerKind.Type

export interface PolicyLayer extends Policies {
  /** `unknown` is a kind that only newer versions know. Such a layer applies to all requests, to be safe. */
  readonly kind: LayerKind | "key" | "unknown"
  /** The id or name of the project, team, route, model or key. `null` for the global layer and an unstored key. */
  readonly scopeId: string | null
  readonly version: number
  /** True if this version cannot decode the row. The layer then denies every request. */
  readonly unreadable?: true
  /** The number of the configuration change that set each limit. Older layers have no such numbers. */
  readonly since?: SharedLimits.Since
  readonly shared?: { readonly limits: SharedLimits.SharedLimits; readonly since: SharedLimits.Since }
}

export interface PolicyLayers {
  readonly empty: boolean
  readonly of: { readonly [Kind in LayerKind]: ReadonlyMap<string, PolicyLayer> }
  readonly unknown: ReadonlyArray<PolicyLayer>
}

export interface LayerScope {
  readonly projectId: string | undefined
  readonly teamId: string | undefined
  readonly route: PolicyRoute
  /** All models of the request. A message batch must satisfy the layers of all its models. */
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

export const applicableLayers = (layers: PolicyLayers, scope: LayerScope): ReadonlyArray<PolicyLayer> =>
  layers.empty
    ? []
    : [
        ...ownerLayers(layers, scope),
        layers.of.route.get(scope.route),
        ...scope.models.map((model) => layers.of.model.get(model))
      ].filter((layer) => layer !== undefined)

export type OwnerScope = Pick<LayerScope, "projectId" | "teamId">

export const ownerLayers = (
  { of, unknown }: PolicyLayers,
  { projectId, teamId }: OwnerScope
): ReadonlyArray<PolicyLayer | undefined> => [
  ...unknown,
  of.global.get(""),
  projectId === undefined ? undefined : of.project.get(projectId),
  teamId === undefined ? undefined : of.team.get(teamId)
]

export type CountedRequests = "all" | { readonly routes: ReadonlyArray<string>; readonly models: ReadonlyArray<string> }

/** The requests that a counter includes. It includes all of them since the configuration change number `since`. */
export interface CountedSince {
  readonly counted: CountedRequests
  readonly since: number
}

/** The project and team of a key. `since` is the number of the change that assigned them. */
interface KeyOwner extends OwnerScope {
  readonly since: number
}

/**
 * If the key, its project, its team or the global layer sets the limit, the counter includes all requests of the key.
 * Otherwise it includes the requests of the routes and models whose layers set the limit.
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

/** Returns names such as `global`, `project:<id>` or `model:<name> (unreadable)`, which usage records store. */
export const layerName = ({ kind, scopeId, unreadable }: PolicyLayer): string => {
  const name = kind === "global" || kind === "key" || scopeId === null ? kind : `${kind}:${scopeId}`
  return unreadable === true ? `${name} (unreadable)` : name
}

export const sharedLimitName = ({ kind, scopeId }: PolicyLayer, field: SharedLimits.LimitField): string =>
  `shared ${field} of ${kind === "global" ? "all keys" : `${kind} ${scopeId ?? ""}`}`

export const unreadableLayerMessage =
  "This version of the program cannot decode the stored policy, so it denies every request to which the policy applies. Update the program, or save the policy again."
