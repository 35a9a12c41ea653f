import { Context, Effect, Layer, Schema } from "effect"
import { KeyPolicy, neutral, patched } from "../gateway/model/KeyPolicy.ts"
import { Database } from "../services/Database.ts"
import type { Actor } from "./Audit.ts"
import {
  type ConfigurationPlan,
  Configuration as Document,
  KeyEntry,
  MappingEntry,
  PriceEntry,
  ProjectEntry,
  ProviderEntry,
  RouteEntry
} from "./api/ConfigurationApi.ts"
import { ControlError, type Refused } from "./api/Errors.ts"
import type { Cursor } from "./api/Fields.ts"
import type { Key } from "./api/KeysApi.ts"
import { CredentialMappings } from "./CredentialMappings.ts"
import * as Difference from "./Difference.ts"
import * as KeyDifference from "./KeyDifference.ts"
import { Keys } from "./Keys.ts"
import { ModelPrices } from "./ModelPrices.ts"
import { Projects } from "./Projects.ts"
import { Providers } from "./Providers.ts"
import { Routes } from "./Routes.ts"
import { type StoreFailure, settled } from "./Store.ts"

type Invalid = Refused<"invalid_configuration_document">

/** Everything that operators decided as one document: written out, compared with another, and made to be as another says. */
export class Configuration extends Context.Service<
  Configuration,
  {
    readonly export: Effect.Effect<Document, StoreFailure>
    /** What applying the document would change. Writes nothing. */
    readonly plan: (document: Document) => Effect.Effect<ConfigurationPlan, Invalid | StoreFailure>
    /**
     * Makes it so, as a whole or not at all, if the configuration is still the one with `baseHash`. Each object goes the
     * way that its own endpoint takes: the same rules, an audit event, a notice. Answers what was changed, and the hash
     * of what is now.
     */
    readonly apply: (
      document: Document,
      baseHash: string
    ) => Effect.Effect<ConfigurationPlan, Invalid | Refused<"configuration_changed"> | StoreFailure, Actor>
  }
>()("svc/control/Configuration") {
  static readonly layer = Layer.suspend(() => Layer.effect(Configuration, make))
}

/** What a change may fail with: whatever the endpoint of its object refuses. */
type Write = Effect.Effect<unknown, ControlError, Actor>

/** How one kind of object is read and written. What has no `create` or `remove` is neither made nor removed here. */
interface Definition<Name extends Section, Entry> {
  readonly section: Name
  readonly schema: Schema.Codec<Entry, unknown>
  /** What the configuration knows it by. */
  readonly identity: (entry: Entry) => string
  readonly read: Effect.Effect<ReadonlyArray<Entry>, StoreFailure>
  readonly wanted: (document: Document) => ReadonlyArray<Entry> | undefined
  readonly create?: (entry: Entry) => Write
  readonly update: (entry: Entry) => Write
  readonly remove?: (entry: Entry) => Write
  /** Lower goes first: what others refer to is there before them and goes after them. */
  readonly rank: (action: Difference.Difference["action"], entry: Entry) => number
  readonly summary?: (entry: Entry, fields: ReadonlyArray<Difference.FieldDifference>) => string
}

type Section = Exclude<keyof Document, "format">

interface Step {
  readonly change: ConfigurationPlan["changes"][number]
  readonly rank: number
  readonly write: Write
}

interface Kind {
  readonly section: Section
  /** What there is, by identity. */
  readonly state: Effect.Effect<Difference.Entries, StoreFailure>
  readonly steps: (state: Difference.Entries, document: Document) => Effect.Effect<ReadonlyArray<Step>, Invalid>
}

const kindOf = <Name extends Section, Entry>(definition: Definition<Name, Entry>): Kind => {
  const { create, identity, rank, read, remove, schema, section, summary, update, wanted } = definition
  const asObject = Schema.toCodecJson(schema).pipe(Schema.encodeTo(Schema.JsonObject))
  const encode = Schema.encodeEffect(asObject)
  const decode = Schema.decodeEffect(asObject)

  const entriesOf = (all: ReadonlyArray<Entry>) =>
    Effect.orDie(
      Effect.map(
        Effect.forEach(all, (entry) => Effect.map(encode(entry), (json) => [identity(entry), json] as const)),
        (entries) => new Map(entries)
      )
    )

  const stepOf = Effect.fnUntraced(function* (difference: Difference.Difference) {
    const { action, after, before, fields, id } = difference
    const entry = yield* Effect.orDie(decode(after ?? before ?? {}))
    const write = { create, update, delete: remove }[action]
    if (write === undefined) {
      return yield* invalid(section, id, "is not there, and cannot be made by a document: its secret would be nowhere")
    }
    return {
      change: {
        section,
        id,
        action,
        before,
        after,
        fields,
        summary: summary === undefined ? null : summary(entry, fields)
      },
      rank: rank(action, entry),
      write: write(entry)
    }
  })

  return {
    section,
    state: Effect.flatMap(read, entriesOf),
    steps: Effect.fnUntraced(function* (state, document) {
      const named = wanted(document)
      if (named === undefined) return []
      const after = yield* entriesOf(named)
      if (after.size < named.length) return yield* invalid(section, "", "names an object twice")
      const kept = remove === undefined ? new Map([...state, ...after]) : after
      return yield* Effect.forEach(Difference.between(state, kept), stepOf)
    })
  }
}

const invalid = (section: string, id: string, reason: string): Invalid =>
  new ControlError("invalid_configuration_document", `${section}${id && ` ${id}`} ${reason}.`, { param: section })

const make = Effect.gen(function* () {
  const database = yield* Database
  const { sql, transaction } = database
  const [projects, keys, providers] = [yield* Projects, yield* Keys, yield* Providers]
  const [mappings, prices, routes] = [yield* CredentialMappings, yield* ModelPrices, yield* Routes]

  const projectNames = Effect.map(projects.list, (all) => new Map(all.map(({ id, name }) => [id, name])))

  const projectNamed = Effect.fnUntraced(function* (name: string) {
    const found = (yield* projects.list).find((project) => project.name === name)
    return found ?? (yield* new ControlError("missing_project", `names a project, ${name}, that there is not`))
  })

  /** All that can still be changed. */
  const livingKeys = Effect.gen(function* () {
    const found: Array<Key> = []
    let cursor: Cursor | undefined
    do {
      const page = yield* keys.list({ limit: 500, ...(cursor && { cursor }) })
      found.push(...page.rows.filter(({ revoked_at }) => revoked_at === null))
      cursor = page.next
    } while (cursor !== undefined)
    return found
  })

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
      read: Effect.zipWith(livingKeys, projectNames, (all, names) =>
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
      wanted: ({ providers }) => providers,
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
      wanted: ({ model_prices }) => model_prices,
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

  const providerNamed = Effect.fnUntraced(function* (kind: string, name: string) {
    const found = (yield* providers.list).find((row) => row.provider === kind && row.name === name)
    return found ?? (yield* new ControlError("missing_provider_config", "is gone"))
  })

  const targetOf = ({ scope, target }: MappingEntry) =>
    scope === "key" ? Effect.succeed(target) : Effect.map(projectNamed(target), ({ id }) => id)

  const mapped = (entry: MappingEntry) =>
    Effect.flatMap(targetOf(entry), (target_id) =>
      mappings.upsert({ scope: entry.scope, target_id, enabled: entry.enabled })
    )

  const states = Effect.map(
    Effect.forEach(kinds, (kind) => Effect.map(kind.state, (state) => [kind.section, state] as const)),
    (all) => new Map(all)
  )

  const stepsTo = (document: Document, held: ReadonlyMap<Section, Difference.Entries>) =>
    Effect.map(
      Effect.forEach(kinds, (kind) => kind.steps(held.get(kind.section) ?? new Map(), document)),
      (steps) => steps.flat().sort((a, b) => a.rank - b.rank)
    )

  // A plan compares one moment with the document.
  const moment = <A, E, R>(work: Effect.Effect<A, E, R>) =>
    transaction(Effect.andThen(sql`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY`, work)).pipe(settled)

  const perform = ({ change, write }: Step) =>
    Effect.mapError(write, (error) =>
      error.code === "store_unavailable"
        ? new ControlError("store_unavailable", error.message)
        : invalid(change.section, change.id, withoutStop(error.message))
    )

  return Configuration.of({
    export: moment(
      Effect.gen(function* () {
        const sections = [...(yield* states)].map(([section, entries]) => [section, [...entries.values()]] as const)
        const document = yield* Effect.orDie(
          decodeDocument({ format: "svc-configuration/1", ...Object.fromEntries(sections) })
        )
        const prefixes = new Map((yield* livingKeys).map(({ id, key_prefix }) => [id, { key_prefix }]))
        return { ...document, keys: document.keys?.map((key) => ({ ...key, ...prefixes.get(key.id) })) ?? [] }
      })
    ).pipe(Effect.withSpan("Configuration.export")),

    plan: Effect.fn("Configuration.plan")((document) =>
      moment(
        Effect.gen(function* () {
          const held = yield* states
          const steps = yield* stepsTo(document, held)
          return { base_hash: Difference.fingerprint(held), changes: steps.map(({ change }) => change) }
        })
      )
    ),

    apply: Effect.fn("Configuration.apply")((document, baseHash) =>
      transaction(
        Effect.gen(function* () {
          // Others wait at the door, so that nothing changes between the look and the last write.
          yield* sql`
            LOCK TABLE projects, api_keys, provider_configs, upstream_credential_mappings, model_prices, canonical_routes
            IN EXCLUSIVE MODE`
          const held = yield* states
          if (Difference.fingerprint(held) !== baseHash) {
            return yield* new ControlError(
              "configuration_changed",
              "The configuration is no longer the one that was planned against: plan again.",
              { param: "base_hash" }
            )
          }
          const steps = yield* stepsTo(document, held)
          yield* Effect.forEach(steps, perform, { discard: true })
          return { base_hash: Difference.fingerprint(yield* states), changes: steps.map(({ change }) => change) }
        })
      ).pipe(settled)
    )
  })
})

const decodeDocument = Schema.decodeUnknownEffect(Schema.toCodecJson(Document))

const withoutStop = (sentence: string): string => sentence.replace(/\.$/, "")

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
