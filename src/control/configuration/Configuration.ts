import { Context, Effect, Layer, Schema } from "effect"
import { Database } from "../../services/Database.ts"
import {
  type AppliedConfiguration,
  type ConfigurationPlan,
  Configuration as Document,
  type KeyEntry,
  maxSectionEntries,
  type Section
} from "../api/ConfigurationApi.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import { type Actor, Audit, Snapshots } from "../audit/Audit.ts"
import { Keys } from "../keys/Keys.ts"
import * as Fingerprint from "../store/Fingerprint.ts"
import { Count, computedRows, type StoreFailure, toStoreFailures } from "../store/Rows.ts"
import * as Applied from "./AppliedConfiguration.ts"
import {
  type ConfigurationState,
  type ConfigurationStep,
  type InvalidDocument,
  invalidDocument
} from "./ConfigurationKind.ts"
import * as Kinds from "./ConfigurationKinds.ts"

/** Exports, compares and applies one document that contains the settings of the operators. */
export class Configuration extends Context.Service<
  Configuration,
  {
    readonly export: (
      omitted: ReadonlyArray<Section>
    ) => Effect.Effect<Document, Refused<"configuration_too_large"> | StoreFailure>
    /** The last document that was applied, and how much was changed without one since. */
    readonly applied: Effect.Effect<AppliedConfiguration, StoreFailure>
    /** Returns the changes that `apply` would make, and writes nothing. */
    readonly plan: (document: Document) => Effect.Effect<ConfigurationPlan, InvalidDocument | StoreFailure>
    /**
     * Applies the document in one transaction if the configuration still has the hash `baseHash`. Each change is
     * validated, audited and announced as if an API request had made it, and the apply has an event of its own after
     * them. Returns the changes and the new hash.
     */
    readonly apply: (
      document: Document,
      baseHash: string
    ) => Effect.Effect<ConfigurationPlan, InvalidDocument | Refused<"configuration_changed"> | StoreFailure, Actor>
  }
>()("svc/control/Configuration") {
  static readonly layer = Layer.suspend(() => Layer.effect(Configuration, make))
}

const make = Effect.gen(function* () {
  const { sql, transaction } = yield* Database
  const audit = yield* Audit
  const kinds = yield* Kinds.make
  const unrevokedKeys = Effect.provideService(Kinds.unrevokedKeys, Keys, yield* Keys)

  const readSections = (some: typeof kinds) =>
    Effect.map(
      Effect.forEach(some, (kind) => Effect.map(kind.currentEntries, (state) => [kind.section, state] as const)),
      (all): ConfigurationState => new Map(all)
    )
  const readState = readSections(kinds)

  const withPrefixes = (keys: ReadonlyArray<KeyEntry>) =>
    Effect.map(unrevokedKeys, (stored) => {
      const prefixes = new Map(stored.map(({ id, key_prefix }) => [id, { key_prefix }]))
      return keys.map((key) => ({ ...key, ...prefixes.get(key.id) }))
    })

  const planSteps = (document: Document, current: ConfigurationState) =>
    Effect.map(
      Effect.forEach(kinds, (kind) => kind.steps(current, document)),
      (steps) => steps.flat().sort((a, b) => a.rank - b.rank)
    )

  // A plan reads many tables. One database snapshot shows all of them at the same moment.
  const inReadSnapshot = <A, E, R>(work: Effect.Effect<A, E, R>) =>
    transaction(Effect.andThen(sql`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY`, work)).pipe(
      toStoreFailures
    )

  const applyStep = ({ change, write }: ConfigurationStep) =>
    Effect.mapError(write, (error) =>
      error.code === "store_unavailable"
        ? new ControlError("store_unavailable", error.message)
        : new ControlError("invalid_configuration_document", `${change.section} ${change.id}: ${error.message}`, {
            param: change.section
          })
    )

  const applyAll = Effect.fnUntraced(function* (document: Document, baseHash: string) {
    // The lock blocks other writers until the commit. The hash that is checked below therefore stays valid.
    yield* sql`LOCK TABLE ${sql.literal(Kinds.lockedTables)} IN EXCLUSIVE MODE`
    const current = yield* readState
    if (Fingerprint.fingerprint(current) !== baseHash) {
      return yield* new ControlError(
        "configuration_changed",
        "The configuration has changed since the plan with this base_hash. Plan the document again.",
        { param: "base_hash" }
      )
    }
    const steps = yield* planSteps(document, current)
    yield* Effect.forEach(steps, applyStep, { discard: true })
    const applied = yield* readState
    const [remaining] = yield* planSteps(document, applied)
    if (remaining !== undefined) return yield* contradictionError(remaining)
    const [unlinkedOwner] = ownersWithoutLinks(current, applied, steps)
    if (unlinkedOwner !== undefined)
      return yield* invalidDocument(unlinkedOwner.section, unlinkedOwner.id, losesLastLink)
    return { base_hash: Fingerprint.fingerprint(applied), changes: steps.map(({ change }) => change) }
  })

  return Configuration.of({
    export: Effect.fn("Configuration.export")((omitted) =>
      inReadSnapshot(
        Effect.gen(function* () {
          const exported = kinds.filter(({ section }) => !omitted.includes(section))
          // keys are the one section that may have hundreds of thousands of entries
          const keyCount = omitted.includes("keys") ? 0 : yield* unrevokedKeyCount(sql)
          if (keyCount > maxSectionEntries) return yield* tooLarge("keys", keyCount)
          const current = yield* readSections(exported)
          for (const [section, { size }] of current) if (size > maxSectionEntries) return yield* tooLarge(section, size)
          const sections = exported.flatMap(({ section, toDocument }) => {
            const content = toDocument(current.get(section) ?? new Map())
            return content === undefined ? [] : [[section, content] as const]
          })
          const { keys, ...document } = yield* Effect.orDie(
            decodeDocument({ format: "svc-configuration/1", ...Object.fromEntries(sections) })
          )
          return keys === undefined ? document : { ...document, keys: yield* withPrefixes(keys) }
        })
      )
    ),

    plan: Effect.fn("Configuration.plan")((document) =>
      inReadSnapshot(
        Effect.gen(function* () {
          const current = yield* readState
          const steps = yield* planSteps(document, current)
          return { base_hash: Fingerprint.fingerprint(current), changes: steps.map(({ change }) => change) }
        })
      )
    ),

    applied: Applied.make(sql).pipe(toStoreFailures, Effect.withSpan("Configuration.applied")),

    apply: Effect.fn("Configuration.apply")((document, baseHash) =>
      audit.mutate(function* () {
        const applied = yield* applyAll(document, baseHash)
        return {
          result: applied,
          auditAction: { target: "configuration", action: "configuration:apply" },
          targetId: "configuration",
          snapshots: yield* snapshots(
            { base_hash: baseHash },
            { base_hash: applied.base_hash, changes: applied.changes.length }
          ),
          changes: []
        }
      })
    )
  })
})

/** The configuration before and after an apply. The entries themselves are in the events of their changes. */
const snapshots = Snapshots.of(Schema.Struct({ base_hash: Schema.String, changes: Schema.optionalKey(Schema.Int) }))

const countRows = computedRows(Schema.Struct({ count: Count }))

const unrevokedKeyCount = (sql: Database["Service"]["sql"]) =>
  Effect.map(
    countRows.all(sql`SELECT count(*) AS count FROM api_keys WHERE revoked_at IS NULL`),
    ([row]) => row?.count ?? 0
  )

const tooLarge = (section: Section, size: number) =>
  new ControlError(
    "configuration_too_large",
    `There are ${size} ${section}, and a section of a document has at most ${maxSectionEntries} entries. Leave the section out (omit ${section}): a document without it keeps what is stored.`,
    { param: section }
  )

const decodeDocument = Schema.decodeUnknownEffect(Schema.toCodecJson(Document))

/** The error for a document that contradicts itself. Such a document still causes changes after all its steps ran. */
const contradictionError = ({ change }: ConfigurationStep) =>
  invalidDocument(
    change.section,
    change.id,
    `contradicts another part of the document: check ${change.fields.map(({ path }) => path).join(", ")}`
  )

/**
 * Returns projects and keys that lost their last link to a service by another change of the document. Without links
 * they could call every service that their policies allow.
 */
const ownersWithoutLinks = (
  before: ConfigurationState,
  after: ConfigurationState,
  steps: ReadonlyArray<ConfigurationStep>
) =>
  (["service_links", "keys"] as const).flatMap((section) =>
    [...(before.get(section)?.entries() ?? [])]
      .filter(
        ([id, before]) =>
          isLinked(before) &&
          !isLinked(after.get(section)?.get(id)) &&
          (section === "keys" || after.get("projects")?.has(id) === true) &&
          !steps.some(({ change }) => change.section === section && change.id === id)
      )
      .map(([id]) => ({ section, id }))
  )

const isLinked = (entry: Schema.JsonObject | undefined): boolean => {
  const names = entry?.["service_names"]
  return Array.isArray(names) && names.length > 0
}

const losesLastLink =
  "loses its last link to a service and could then call every service: list its services in the document"
