import type { BodyOf, ResponseOf } from "../../../api/Endpoints.ts"
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
export type LayerUpsert = BodyOf<"POST", typeof layersPath>
export type LayerKind = Layer["kind"]

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
