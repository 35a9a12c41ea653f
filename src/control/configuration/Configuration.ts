import { Context, Effect, Layer, Schema } from "effect"
import { Database } from "../../services/Database.ts"
import { type ConfigurationPlan, Configuration as Document } from "../api/ConfigurationApi.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import type { Actor } from "../audit/Audit.ts"
import { Keys } from "../keys/Keys.ts"
import { type StoreFailure, toStoreFailures } from "../store/Rows.ts"
import * as ConfigurationDiff from "./ConfigurationDiff.ts"
import {
  type ConfigurationState,
  type ConfigurationStep,
  type InvalidDocument,
  invalidDocument
} from "./ConfigurationKind.ts"
import * as Kinds from "./ConfigurationKinds.ts"

/**
 * Everything that operators decided as one document: written out, compared with another, and made to be as another
 * says.
 */
export class Configuration extends Context.Service<
  Configuration,
  {
    readonly export: Effect.Effect<Document, StoreFailure>
    /** What applying the document would change. Writes nothing. */
    readonly plan: (document: Document) => Effect.Effect<ConfigurationPlan, InvalidDocument | StoreFailure>
    /**
     * Makes it so, as a whole or not at all, if the configuration is still the one with `baseHash`. Each object goes
     * the way that its own endpoint takes: the same rules, an audit event, a notice. Answers what was changed, and the
     * hash of what is now.
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
  const kinds = yield* Kinds.make
  const livingKeys = Effect.provideService(Kinds.unrevokedKeys, Keys, yield* Keys)

  const readState = Effect.map(
    Effect.forEach(kinds, (kind) => Effect.map(kind.currentEntries, (state) => [kind.section, state] as const)),
    (all): ConfigurationState => new Map(all)
  )

  const planSteps = (document: Document, current: ConfigurationState) =>
    Effect.map(
      Effect.forEach(kinds, (kind) => kind.steps(current, document)),
      (steps) => steps.flat().sort((a, b) => a.rank - b.rank)
    )

  // A plan compares one moment with the document.
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

  return Configuration.of({
    export: inReadSnapshot(
      Effect.gen(function* () {
        const current = yield* readState
        const sections = kinds.flatMap(({ section, toDocument }) => {
          const content = toDocument(current.get(section) ?? new Map())
          return content === undefined ? [] : [[section, content] as const]
        })
        const document = yield* Effect.orDie(
          decodeDocument({ format: "svc-configuration/1", ...Object.fromEntries(sections) })
        )
        const prefixes = new Map((yield* livingKeys).map(({ id, key_prefix }) => [id, { key_prefix }]))
        return { ...document, keys: document.keys?.map((key) => ({ ...key, ...prefixes.get(key.id) })) ?? [] }
      })
    ).pipe(Effect.withSpan("Configuration.export")),

    plan: Effect.fn("Configuration.plan")((document) =>
      inReadSnapshot(
        Effect.gen(function* () {
          const current = yield* readState
          const steps = yield* planSteps(document, current)
          return { base_hash: ConfigurationDiff.fingerprint(current), changes: steps.map(({ change }) => change) }
        })
      )
    ),

    apply: Effect.fn("Configuration.apply")((document, baseHash) =>
      transaction(
        Effect.gen(function* () {
          // Others wait at the door, so that nothing changes between the look and the last write.
          yield* sql`LOCK TABLE ${sql.literal(Kinds.lockedTables)} IN EXCLUSIVE MODE`
          const current = yield* readState
          if (ConfigurationDiff.fingerprint(current) !== baseHash) {
            return yield* new ControlError(
              "configuration_changed",
              "The configuration is no longer the one that was planned against: plan again.",
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
          return { base_hash: ConfigurationDiff.fingerprint(applied), changes: steps.map(({ change }) => change) }
        })
      ).pipe(toStoreFailures)
    )
  })
})

const decodeDocument = Schema.decodeUnknownEffect(Schema.toCodecJson(Document))

/**
 * One of the changes undid what the document says of another object, as one that takes away what the other names does.
 */
const contradictionError = ({ change }: ConfigurationStep) =>
  invalidDocument(
    change.section,
    change.id,
    `cannot be as the document says together with all else that it says: look at ${change.fields.map(({ path }) => path).join(", ")}`
  )

/**
 * Who was linked to services that are all gone now, and is not spoken of. Nobody may call more because a service goes,
 * and who has no links may call whatever the policy allows.
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

const losesLastLink = "loses its last link to a service, and could call every other: say what it may call"
