import { Effect, Schema } from "effect"
import * as Settings from "../../policy/AuthSettings.ts"
import { Passthrough } from "../../policy/routes/Passthrough.ts"
import { originOf } from "../../policy/routes/StoredCredential.ts"
import {
  GuardrailEntry,
  type LayerEntry,
  MappingEntry,
  PriceEntry,
  ProjectEntry,
  ProviderEntry,
  RouteEntry,
  ServiceEntry,
  ServiceLinksEntry,
  StudioEntry
} from "../api/ConfigurationApi.ts"
import type { PolicyLayer } from "../api/policies/PolicyLayersApi.ts"
import { ControlError } from "../api/schema/Errors.ts"
import { Id } from "../api/schema/Fields.ts"
import { CredentialMappings } from "../keys/CredentialMappings.ts"
import { Keys } from "../keys/Keys.ts"
import { Projects } from "../keys/Projects.ts"
import { AuthSettings } from "../operators/AuthSettings.ts"
import { Guardrails } from "../policies/Guardrails.ts"
import { PolicyLayers } from "../policies/PolicyLayers.ts"
import { ModelPrices } from "../providers/ModelPrices.ts"
import { Providers } from "../providers/Providers.ts"
import { Routes } from "../providers/Routes.ts"
import { UpstreamPassthroughSettings } from "../providers/UpstreamPassthroughSettings.ts"
import { Services } from "../services/Services.ts"
import { StudioConnection } from "../services/StudioConnection.ts"
import type { Page } from "../store/Paging.ts"
import type * as ConfigurationDiff from "./ConfigurationDiff.ts"
import * as Entries from "./ConfigurationEntries.ts"
import { type ConfigurationKind, type ConfigurationState, makeKind, makeSettingsKind } from "./ConfigurationKind.ts"
import * as KeyChangeSummary from "./KeyChangeSummary.ts"

/** Applying a document locks these tables against other writers. */
export const lockedTables = [
  "projects",
  "api_keys",
  "provider_configs",
  "upstream_credential_mappings",
  "model_prices",
  "canonical_routes",
  "guardrail_definitions",
  "service_registrations",
  "project_service_links",
  "key_service_links",
  "policy_layers",
  "upstream_passthrough_settings",
  "studio_connection_settings",
  "gateway_auth_settings"
].join(", ")

const everyPage = Effect.fnUntraced(function* <A, Position, E>(
  list: (query: { readonly limit: number; readonly cursor?: Position }) => Effect.Effect<Page<A, Position>, E>
) {
  const items: Array<A> = []
  let cursor: Position | undefined
  do {
    const page = yield* list({ limit: 500, ...(cursor && { cursor }) })
    items.push(...page.rows)
    cursor = page.next
  } while (cursor !== undefined)
  return items
})

/** Revoked keys cannot be changed, so they are left out of the configuration document. */
export const unrevokedKeys = Effect.flatMap(Keys, (keys) =>
  Effect.map(everyPage(keys.list), (all) => all.filter(({ revoked_at }) => revoked_at === null))
)

/** Returns all sections of the document. Each section uses the same service as its API endpoints. */
export const make = Effect.gen(function* () {
  const [projects, keys, providers] = [yield* Projects, yield* Keys, yield* Providers]
  const [mappings, prices, routes] = [yield* CredentialMappings, yield* ModelPrices, yield* Routes]
  const [guardrails, layers, services] = [yield* Guardrails, yield* PolicyLayers, yield* Services]
  const [passthrough, studio, frontDoor] = [
    yield* UpstreamPassthroughSettings,
    yield* StudioConnection,
    yield* AuthSettings
  ]

  const allProjects = Effect.suspend(() => everyPage(projects.list))

  const projectNameLookup = Effect.map(allProjects, (all) => {
    const names = new Map(all.map(({ id, name }) => [id, name]))
    return (id: string | null) => (id === null ? null : (names.get(id) ?? null))
  })

  const findProject = Effect.fnUntraced(function* (name: string) {
    const project = (yield* allProjects).find((candidate) => candidate.name === name)
    return project ?? (yield* new ControlError("missing_project", `There is no project ${name}.`))
  })

  const findProjectId = (name: string | null) =>
    name === null ? Effect.succeed(null) : Effect.map(findProject(name), ({ id }) => id)

  const findProvider = Effect.fnUntraced(function* (kind: string, name: string) {
    const provider = (yield* providers.list).find((row) => row.provider === kind && row.name === name)
    return (
      provider ??
      (yield* new ControlError(
        "missing_provider_config",
        "The provider row no longer exists. Plan the document again."
      ))
    )
  })

  const mappingTargetId = Effect.fnUntraced(function* ({ scope, target }: MappingEntry) {
    if (scope === "project") return (yield* findProject(target)).id
    return isId(target) ? target : yield* new ControlError("invalid_request", "The target must be the id of a key.")
  })

  const upsertMapping = (entry: MappingEntry) =>
    Effect.flatMap(mappingTargetId(entry), (target_id) =>
      mappings.upsert({ scope: entry.scope, target_id, enabled: entry.enabled })
    )

  const layerScopeId = ({ kind, scope }: Pick<LayerEntry, "kind" | "scope">) =>
    kind === "project" ? findProjectId(scope) : Effect.succeed(scope)

  const upsertLayer = ({ scope, ...entry }: LayerEntry) =>
    Effect.flatMap(layerScopeId({ kind: entry.kind, scope }), (scope_id) => layers.upsert({ ...entry, scope_id }))

  const setProjectLinks = (project: string, service_names: ReadonlyArray<string>) =>
    Effect.flatMap(findProject(project), ({ id }) => projects.update(id, { service_names }))

  const kinds: ReadonlyArray<ConfigurationKind> = [
    makeKind({
      section: "projects",
      schema: ProjectEntry,
      identity: ({ name }) => name.trim(),
      read: Effect.map(allProjects, (all) => all.map(({ name }) => ({ name }))),
      fromDocument: (document) => document.projects?.map(({ name }) => ({ name: name.trim() })),
      create: ({ name }) => projects.create({ name }),
      update: () => Effect.void,
      remove: ({ name }) => Effect.flatMap(findProject(name), ({ id }) => projects.remove(id)),
      rank: (action) => (action === "delete" ? 90 : 10)
    }),
    makeKind({
      section: "guardrails",
      schema: GuardrailEntry,
      identity: ({ name }) => name,
      read: Effect.map(guardrails.list, (all) => all.map(Entries.guardrailEntry)),
      fromDocument: ({ guardrails }) => guardrails?.map(Entries.withStreamDefaults),
      create: ({ endpoint_url, provider_kind, stream_mode, timeout_ms, window_chars, ...entry }) =>
        provider_kind === "built_in"
          ? Effect.fail(
              new ControlError("invalid_guardrail_request", "This gateway has no built-in guardrail of this name.")
            )
          : guardrails.create({
              ...entry,
              endpoint_url: endpoint_url ?? "",
              ...(timeout_ms && { timeout_ms }),
              ...(stream_mode && { stream_mode }),
              ...(window_chars && { window_chars })
            }),
      update: ({ description, endpoint_url, name, provider_kind, stream_mode, timeout_ms, window_chars, ...patch }) =>
        guardrails.update(name, {
          ...patch,
          ...(provider_kind === "http" && {
            description,
            ...(endpoint_url !== null && { endpoint_url }),
            ...(timeout_ms !== null && { timeout_ms }),
            ...(stream_mode !== null && { stream_mode }),
            ...(window_chars !== null && { window_chars })
          })
        }),
      remove: ({ name }) => guardrails.remove(name),
      isKept: (entry) => entry["provider_kind"] === "built_in",
      summary: credentialRemovedNote("endpoint_url"),
      // Deleting a guardrail also changes the policies that name it, so the document's policies are written first.
      rank: (action) => (action === "delete" ? 80 : 15)
    }),
    makeKind({
      section: "services",
      schema: ServiceEntry,
      identity: ({ name }) => name,
      read: Effect.zipWith(services.list, projectNameLookup, (all, nameOf) =>
        all.map((service) => Entries.serviceEntry(service, nameOf(service.project_id)))
      ),
      fromDocument: (document) =>
        document.services?.map((entry) => ({
          ...entry,
          project: entry.project?.trim() ?? null,
          upstream_base_url: entry.upstream_base_url && Entries.normalizedOrigin(entry.upstream_base_url)
        })),
      create: ({ project, ...entry }) =>
        Effect.flatMap(findProjectId(project), (project_id) => services.create({ ...entry, project_id })),
      update: ({ endpoint_pricing_rules, name, openapi_endpoints, project, ...patch }, changed) =>
        Effect.flatMap(findProjectId(project), (project_id) =>
          services.update(name, {
            ...patch,
            project_id,
            // A patch validates endpoints with the rules for endpoints that operators write. Imported endpoints may
            // break these rules. The patch therefore contains the two fields only if the document changes them.
            ...(changed("openapi_endpoints") && { openapi_endpoints }),
            ...(changed("endpoint_pricing_rules") && { endpoint_pricing_rules })
          })
        ),
      summary: credentialRemovedNote("upstream_base_url"),
      // This may delete the last link of a project or key. `Configuration.apply` checks this at the end.
      remove: ({ name }) => services.remove(name, { allowLastLinks: true }),
      // Ids are unique. Entries without an id are written first, because they may release an id for another entry.
      rank: (action, { studio_service_id }) => (action === "delete" ? 20 : studio_service_id === null ? 21 : 22)
    }),
    makeKind({
      section: "service_links",
      schema: ServiceLinksEntry,
      identity: ({ project }) => project,
      read: Effect.map(allProjects, (all) =>
        all.flatMap(({ name, service_names }) =>
          service_names.length === 0 ? [] : [{ project: name, service_names: Entries.normalizedLinks(service_names) }]
        )
      ),
      fromDocument: (document) =>
        document.service_links
          ?.filter(({ service_names }) => service_names.length > 0)
          .map(({ project, service_names }) => ({
            project: project.trim(),
            service_names: Entries.normalizedLinks(service_names)
          })),
      create: ({ project, service_names }) => setProjectLinks(project, service_names),
      update: ({ project, service_names }) => setProjectLinks(project, service_names),
      remove: ({ project }) => setProjectLinks(project, []),
      rank: () => 25
    }),
    makeKind({
      section: "keys",
      schema: Entries.ComparableKey,
      identity: ({ id }) => id,
      read: Effect.zipWith(Effect.provideService(unrevokedKeys, Keys, keys), projectNameLookup, (all, nameOf) =>
        all.map((key) => Entries.comparableKey({ ...key, project: nameOf(key.project_id) }))
      ),
      fromDocument: (document) => document.keys?.map(Entries.comparableKey),
      update: ({ id, project, ...patch }) =>
        Effect.flatMap(findProjectId(project), (project_id) => keys.update(id, { ...patch, project_id })),
      rank: () => 30,
      summary: ({ id }, { fields }) => KeyChangeSummary.ofKey(id, fields)
    }),
    makeKind({
      section: "policy_layers",
      schema: Entries.ComparableLayer,
      identity: layerName,
      read: Effect.zipWith(everyPage(layers.list), projectNameLookup, (all, nameOf) => {
        const scopeOf = ({ kind, scope_id }: PolicyLayer) => (kind === "project" ? nameOf(scope_id) : scope_id)
        return all
          .map((layer) => Entries.comparableLayer({ ...layer, scope: scopeOf(layer) }))
          .filter(({ kind, scope }) => kind === "global" || scope !== null)
      }),
      fromDocument: (document) => document.policy_layers?.map(Entries.comparableLayer),
      create: upsertLayer,
      update: upsertLayer,
      remove: (entry) =>
        Effect.flatMap(layerScopeId(entry), (scope) =>
          Effect.flatMap(layers.find(entry.kind, scope), (id) => (id === undefined ? Effect.void : layers.remove(id)))
        ),
      rank: (action) => (action === "delete" ? 35 : 36),
      summary: (entry, { after, before }, current) =>
        KeyChangeSummary.ofLayer(
          layerName(entry),
          countKeysUnder(entry, current),
          { enabled: entry.enabled, ...Entries.unrestrictedPolicies, ...before },
          { enabled: entry.enabled, ...Entries.unrestrictedPolicies, ...after }
        )
    }),
    makeKind({
      section: "providers",
      schema: ProviderEntry,
      identity: ({ name, provider }) => `${provider}/${name}`,
      read: Effect.map(providers.list, (all) =>
        all.map(({ id: _, created_at: _1, credential_configured: _2, updated_at: _3, ...entry }) => entry)
      ),
      fromDocument: (document) =>
        document.providers?.map((entry) => ({
          ...entry,
          name: entry.name.trim(),
          base_url: Entries.normalizedUpstreamBase(entry.base_url)
        })),
      create: (entry) => providers.create(entry),
      update: ({ name, provider, ...patch }) =>
        Effect.flatMap(findProvider(provider, name), ({ id }) => providers.update(id, patch)),
      remove: ({ name, provider }) => Effect.flatMap(findProvider(provider, name), ({ id }) => providers.remove(id)),
      summary: credentialRemovedNote("base_url"),
      // Only one row per API family may be enabled, so rows are disabled before others are enabled.
      rank: (action, { enabled }) => (action === "delete" || (action === "update" && !enabled) ? 40 : 41)
    }),
    makeKind({
      section: "credential_mappings",
      schema: MappingEntry,
      identity: ({ scope, target }) => `${scope}/${target}`,
      read: Effect.map(mappings.list, (all) =>
        all.map(({ enabled, scope, target_id, target_label }) => ({
          scope,
          target: scope === "key" ? target_id : target_label,
          enabled
        }))
      ),
      fromDocument: ({ credential_mappings }) => credential_mappings,
      create: (entry) => upsertMapping(entry),
      update: (entry) => upsertMapping(entry),
      remove: (entry) =>
        Effect.flatMap(mappingTargetId(entry), (target) =>
          Effect.flatMap(mappings.list, (all) => {
            const mapping = all.find(({ scope, target_id }) => scope === entry.scope && target_id === target)
            return mapping === undefined ? Effect.void : mappings.remove(mapping.id)
          })
        ),
      rank: () => 50
    }),
    makeKind({
      section: "model_prices",
      schema: PriceEntry,
      identity: ({ model }) => model,
      read: Effect.map(prices.list, (all) => all.map(({ updated_at: _, ...entry }) => entry)),
      fromDocument: (document) => document.model_prices?.map(Entries.roundedPrice),
      create: ({ model, ...price }) => prices.put(model, price),
      update: ({ model, ...price }) => prices.put(model, price),
      remove: ({ model }) => prices.remove(model),
      rank: () => 60
    }),
    makeKind({
      section: "routes",
      schema: RouteEntry,
      identity: ({ route_id }) => route_id,
      read: Effect.zipWith(routes.list("a"), routes.list("b"), (a, b) =>
        [...a, ...b].map(({ route: _, updated_at: _1, ...entry }) => entry)
      ),
      fromDocument: (document) => document.routes,
      update: ({ route_id, ...patch }) => routes.configure(route_id, patch),
      rank: () => 70
    }),
    makeSettingsKind({
      section: "upstream_passthrough",
      schema: Passthrough,
      read: Effect.map(passthrough.get, ({ updated_at: _, ...entry }) => entry),
      fromDocument: ({ upstream_passthrough: entry }) =>
        entry && { ...entry, allowed_methods: entry.allowed_methods.map((method) => method.toUpperCase()) },
      update: passthrough.update,
      rank: 70
    }),
    makeSettingsKind({
      section: "studio_connection",
      schema: StudioEntry,
      read: Effect.map(studio.get, ({ base_url, source }) => ({ base_url: source === "persisted" ? base_url : null })),
      fromDocument: ({ studio_connection: entry }) =>
        entry && { base_url: entry.base_url && Entries.normalizedBaseUrl(entry.base_url) },
      update: studio.update,
      rank: 70,
      summary: credentialRemovedNote("base_url")
    }),
    makeSettingsKind({
      section: "front_door",
      schema: Settings.AuthSettings,
      read: Effect.map(frontDoor.get, Entries.authSettingsEntry),
      fromDocument: ({ front_door }) => front_door,
      update: frontDoor.update,
      rank: 70
    })
  ]
  return kinds
})

/** Returns a note for operators if a changed address removes the stored credential. */
const credentialRemovedNote =
  (field: string) =>
  (_entry: unknown, { after, before }: ConfigurationDiff.EntryChange): string | null => {
    const [from, to] = [before?.[field], after?.[field]]
    // Texts that are not URLs are ignored here, because writing them fails.
    return isAddress(from) && isAddress(to) && originOf(from) !== originOf(to)
      ? `${field} moves to another scheme, host or port: a stored credential is removed and must be stored again.`
      : null
  }

const isAddress = (value: Schema.Json | undefined): value is string => typeof value === "string" && URL.canParse(value)

const isId = Schema.is(Id)

const layerName = ({ kind, scope }: Pick<LayerEntry, "kind" | "scope">): string =>
  scope === null ? kind : `${kind}/${scope}`

const countKeysUnder = ({ kind, scope }: LayerEntry, current: ConfigurationState): number => {
  const keys = [...(current.get("keys")?.values() ?? [])]
  if (kind === "project") return keys.filter((key) => key["project"] === scope).length
  return kind === "team" ? keys.filter((key) => key["team_id"] === scope).length : keys.length
}
