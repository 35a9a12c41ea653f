import { Effect, Schema } from "effect"
import { KeyPolicy, neutral, patched } from "../gateway/model/KeyPolicy.ts"
import * as Price from "../gateway/model/Price.ts"
import { KeyEntry, MappingEntry, PriceEntry, ProjectEntry, ProviderEntry, RouteEntry } from "./api/ConfigurationApi.ts"
import { ControlError } from "./api/Errors.ts"
import { type Cursor, Id } from "./api/Fields.ts"
import type { Key } from "./api/KeysApi.ts"
import { type Kind, kindOf } from "./ConfigurationKind.ts"
import { CredentialMappings } from "./CredentialMappings.ts"
import * as KeyDifference from "./KeyDifference.ts"
import { Keys } from "./Keys.ts"
import { ModelPrices } from "./ModelPrices.ts"
import { Projects } from "./Projects.ts"
import { Providers } from "./Providers.ts"
import { Routes } from "./Routes.ts"
import { refusedOrigin } from "./Rules.ts"

/** The tables that hold them: while a document is applied, nobody else writes there. */
export const tables =
  "projects, api_keys, provider_configs, upstream_credential_mappings, model_prices, canonical_routes"

/** All that can still be changed. */
export const livingKeys = Effect.gen(function* () {
  const keys = yield* Keys
  const found: Array<Key> = []
  let cursor: Cursor | undefined
  do {
    const page = yield* keys.list({ limit: 500, ...(cursor && { cursor }) })
    found.push(...page.rows.filter(({ revoked_at }) => revoked_at === null))
    cursor = page.next
  } while (cursor !== undefined)
  return found
})

/** Every kind that the document has, each by the stores that its endpoints use. */
export const make = Effect.gen(function* () {
  const [projects, keys, providers] = [yield* Projects, yield* Keys, yield* Providers]
  const [mappings, prices, routes] = [yield* CredentialMappings, yield* ModelPrices, yield* Routes]

  const projectNames = Effect.map(projects.list, (all) => new Map(all.map(({ id, name }) => [id, name])))

  const projectNamed = Effect.fnUntraced(function* (name: string) {
    const found = (yield* projects.list).find((project) => project.name === name)
    return found ?? (yield* new ControlError("missing_project", `names a project, ${name}, that there is not`))
  })

  const providerNamed = Effect.fnUntraced(function* (kind: string, name: string) {
    const found = (yield* providers.list).find((row) => row.provider === kind && row.name === name)
    return found ?? (yield* new ControlError("missing_provider_config", "is gone"))
  })

  const targetOf = Effect.fnUntraced(function* ({ scope, target }: MappingEntry) {
    if (scope === "project") return (yield* projectNamed(target)).id
    return isId(target)
      ? target
      : yield* new ControlError("invalid_request", "has a target that is not the id of a key")
  })

  const mapped = (entry: MappingEntry) =>
    Effect.flatMap(targetOf(entry), (target_id) =>
      mappings.upsert({ scope: entry.scope, target_id, enabled: entry.enabled })
    )

  const kinds: ReadonlyArray<Kind> = [
    kindOf({
      section: "projects",
      schema: ProjectEntry,
      identity: ({ name }) => name.trim(),
      read: Effect.map(projects.list, (all) => all.map(({ name }) => ({ name }))),
      wanted: (document) => document.projects?.map(({ name }) => ({ name: name.trim() })),
      create: ({ name }) => projects.create(name),
      update: () => Effect.void,
      remove: ({ name }) => Effect.flatMap(projectNamed(name), ({ id }) => projects.remove(id)),
      rank: (action) => (action === "delete" ? 90 : 10)
    }),
    kindOf({
      section: "keys",
      schema: ComparedKey,
      identity: ({ id }) => id,
      read: Effect.zipWith(Effect.provideService(livingKeys, Keys, keys), projectNames, (all, names) =>
        all.map((key) => compared({ ...key, project: key.project_id && (names.get(key.project_id) ?? null) }))
      ),
      wanted: (document) => document.keys?.map(compared),
      update: ({ id, project, ...patch }) =>
        Effect.gen(function* () {
          const project_id = project === null ? null : (yield* projectNamed(project)).id
          return yield* keys.update(id, { ...patch, project_id })
        }),
      rank: () => 20,
      summary: ({ id }, fields) => KeyDifference.sentence(id, fields)
    }),
    kindOf({
      section: "providers",
      schema: ProviderEntry,
      identity: ({ name, provider }) => `${provider}/${name}`,
      read: Effect.map(providers.list, (all) =>
        all.map(({ id: _, created_at: _1, credential_configured: _2, updated_at: _3, ...entry }) => entry)
      ),
      wanted: (document) =>
        document.providers?.map((entry) => ({ ...entry, name: entry.name.trim(), base_url: originOf(entry.base_url) })),
      create: (entry) => providers.create(entry),
      update: ({ name, provider, ...patch }) =>
        Effect.flatMap(providerNamed(provider, name), ({ id }) => providers.update(id, patch)),
      remove: ({ name, provider }) => Effect.flatMap(providerNamed(provider, name), ({ id }) => providers.remove(id)),
      // One row may be the upstream: who stops being it goes before who becomes it.
      rank: (action, { enabled }) => (action === "delete" || (action === "update" && !enabled) ? 30 : 31)
    }),
    kindOf({
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
      wanted: ({ credential_mappings }) => credential_mappings,
      create: (entry) => mapped(entry),
      update: (entry) => mapped(entry),
      remove: (entry) =>
        Effect.flatMap(targetOf(entry), (target) =>
          Effect.flatMap(mappings.list, (all) => {
            const found = all.find(({ scope, target_id }) => scope === entry.scope && target_id === target)
            return found === undefined ? Effect.void : mappings.remove(found.id)
          })
        ),
      rank: () => 40
    }),
    kindOf({
      section: "model_prices",
      schema: PriceEntry,
      identity: ({ model }) => model,
      read: Effect.map(prices.list, (all) => all.map(({ updated_at: _, ...entry }) => entry)),
      wanted: (document) => document.model_prices?.map(kept),
      create: ({ model, ...price }) => prices.put(model, price),
      update: ({ model, ...price }) => prices.put(model, price),
      remove: ({ model }) => prices.remove(model),
      rank: () => 50
    }),
    kindOf({
      section: "routes",
      schema: RouteEntry,
      identity: ({ route_id }) => route_id,
      read: Effect.zipWith(routes.list("a"), routes.list("b"), (a, b) =>
        [...a, ...b].map(({ route: _, updated_at: _1, ...entry }) => entry)
      ),
      wanted: (document) => document.routes,
      update: ({ route_id, ...patch }) => routes.configure(route_id, patch),
      rank: () => 60
    })
  ]
  return kinds
})

const isId = Schema.is(Id)

/** A key as it is compared: with its whole policy, and without what a rotation changes. */
const ComparedKey = Schema.Struct({
  id: KeyEntry.fields.id,
  owner_type: KeyEntry.fields.owner_type,
  project: KeyEntry.fields.project,
  disabled: KeyEntry.fields.disabled,
  expires_at: KeyEntry.fields.expires_at,
  rotation_due_at: KeyEntry.fields.rotation_due_at,
  policy: KeyPolicy
})

const compared = (key: KeyEntry): typeof ComparedKey.Type => ({
  id: key.id,
  owner_type: key.owner_type,
  project: key.project,
  disabled: key.disabled,
  expires_at: key.expires_at,
  rotation_due_at: key.rotation_due_at,
  policy: patched(neutral, key.policy)
})

/** As it is stored; what cannot be is left for the refusal. */
const originOf = (url: string): string => (refusedOrigin(url) === undefined ? new URL(url).origin : url)

/** Prices are kept to the nano-dollar. */
const kept = (price: PriceEntry): PriceEntry => {
  const nanos = (dollars: number) => Price.toDollars(Price.toNanos(dollars))
  const orNull = (dollars: number | null) => (dollars === null ? null : nanos(dollars))
  return {
    model: price.model,
    input_usd_per_million: nanos(price.input_usd_per_million),
    output_usd_per_million: nanos(price.output_usd_per_million),
    cached_input_usd_per_million: orNull(price.cached_input_usd_per_million),
    cache_write_usd_per_million: orNull(price.cache_write_usd_per_million)
  }
}
