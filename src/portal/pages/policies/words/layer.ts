import { call } from "../../../api/control.ts"
import type { BodyOf, ResponseOf } from "../../../api/Endpoints.ts"
import { type PolicyField, restrictingOf } from "../../../shared/policy/fields.ts"
import type { Proposal } from "../../../shared/policy/Impact.tsx"
import type { ConfigurationSections } from "../../../shared/words/CopyAs.tsx"

export const layersPath = "/admin-ui/admin/policy-layers"
export const layerPath = "/admin-ui/admin/policy-layers/:id"
/** What is old once a layer has changed. */
export const staleAfterLayers = [
  layersPath,
  layerPath,
  "/admin-ui/admin/policy/effective",
  "/admin-ui/admin/policy/impact",
  "/admin-ui/admin/audit-events",
  "/admin-ui/admin/keys"
]

export type Layer = ResponseOf<"GET", typeof layersPath>[number]
export type LayerUpsert = Omit<BodyOf<"POST", typeof layersPath>, "expected_updated_at">
export type LayerPatch = Omit<BodyOf<"PATCH", typeof layerPath>, "expected_updated_at">
export type LayerKind = Layer["kind"]

/** A scope that has no layer yet. */
export interface NewLayer extends Pick<Layer, "kind" | "scope_id" | "project_name"> {
  readonly updated_at: null
}

export const isStored = (layer: Layer | NewLayer): layer is Layer => layer.updated_at !== null

export const newLayer = (kind: LayerKind, scope: string | null | undefined): NewLayer => ({
  kind,
  scope_id: kind === "global" ? null : (scope ?? null),
  project_name: null,
  updated_at: null
})

/** Names a layer in a list of them: there is at most one. */
export const scopeQuery = (kind: LayerKind, scope: string | null | undefined) => ({
  kind,
  ...(kind !== "global" && { scope_id: scope ?? undefined }),
  limit: 1
})

/** Reads the layer of a scope, or says that there is none. */
export const layerAt = async (kind: LayerKind, scope: string | null | undefined): Promise<Layer | NewLayer> => {
  const [found] = await call("GET", layersPath, { query: scopeQuery(kind, scope) })
  return found ?? newLayer(kind, scope)
}

const kindWords: Readonly<Record<LayerKind, string>> = {
  global: "all keys",
  project: "project",
  team: "team",
  route: "route",
  model: "model"
}

/** `all keys`, `team blue`. */
export const layerName = ({
  kind,
  project_name,
  scope_id
}: Pick<Layer, "kind" | "scope_id" | "project_name">): string =>
  kind === "global" ? kindWords.global : `${kindWords[kind]} ${project_name ?? scope_id ?? ""}`

export const policyOf = ({ policy }: Layer) => {
  const { policy_version: _, ...fields } = policy
  return fields
}

/** A layer as flat fields, by the names that the API has for them. */
export const layerFields = (layer: Layer): Readonly<Record<string, unknown>> => ({
  enabled: layer.enabled,
  ...prefixed("policy", policyOf(layer)),
  ...prefixed("shared", layer.shared),
  ...prefixed("guardrail_policy", layer.guardrail_policy)
})

/** Only what the layer restricts, beside a scope that had no layer. */
export const restrictedFields = (
  layer: Layer,
  fields: ReadonlyArray<PolicyField>
): Readonly<Record<string, unknown>> => ({
  enabled: layer.enabled,
  ...prefixed("policy", restrictingOf(fields, policyOf(layer))),
  ...prefixed("shared", restrictingOf(fields, { ...layer.shared })),
  ...prefixed(
    "guardrail_policy",
    Object.fromEntries(Object.entries(layer.guardrail_policy).filter(([, chosen]) => Object.keys(chosen).length > 0))
  )
})

export const prefixed = (prefix: string, fields: object | null | undefined): Readonly<Record<string, unknown>> =>
  Object.fromEntries(Object.entries(fields ?? {}).map(([name, value]) => [`${prefix}.${name}`, value]))

/** Everything that is stored of a layer, as `POST policy-layers` takes it: for what would be, and for restoring it. */
export const upsertOf = (layer: Layer): LayerUpsert => ({
  kind: layer.kind,
  ...(layer.scope_id !== null && { scope_id: layer.scope_id }),
  enabled: layer.enabled,
  policy: policyOf(layer),
  shared: layer.shared,
  guardrail_policy: layer.guardrail_policy
})

/** The layer as it would be. */
export const proposedOf = (layer: Layer | NewLayer, changes: LayerPatch): LayerUpsert => {
  if (!isStored(layer))
    return { kind: layer.kind, ...(layer.scope_id !== null && { scope_id: layer.scope_id }), ...changes }
  const before = upsertOf(layer)
  return {
    ...before,
    enabled: changes.enabled ?? layer.enabled,
    policy: { ...before.policy, ...changes.policy },
    shared: { ...before.shared, ...changes.shared },
    guardrail_policy: { ...before.guardrail_policy, ...changes.guardrail_policy }
  }
}

/** Whom it would hit if the layer were gone. */
export const withoutLayer = (layer: Layer): Proposal => ({ layer: { ...upsertOf(layer), enabled: false } })

/** The same as an entry of the configuration document. */
export const configurationOf = (layer: Layer): ConfigurationSections => ({
  policy_layers: [
    {
      kind: layer.kind,
      scope: layer.kind === "project" ? layer.project_name : layer.scope_id,
      enabled: layer.enabled,
      policy: policyOf(layer),
      shared: layer.shared,
      guardrail_policy: layer.guardrail_policy
    }
  ]
})
