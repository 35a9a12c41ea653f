import { Effect, Schema } from "effect"
import type { Configuration, ConfigurationChange, Section } from "../api/ConfigurationApi.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import type { Actor } from "../audit/Audit.ts"
import type { EntriesById } from "../store/Fingerprint.ts"
import type { StoreFailure } from "../store/Rows.ts"
import * as ConfigurationDiff from "./ConfigurationDiff.ts"

export type InvalidDocument = Refused<"invalid_configuration_document">

export type ConfigurationState = ReadonlyMap<Section, EntriesById>

type Write = Effect.Effect<unknown, ControlError, Actor>

/** Reads and writes the objects of one section. `create` and `remove` are absent if documents must not do this. */
interface KindDefinition<Entry> {
  readonly section: Section
  readonly schema: Schema.Codec<Entry, unknown>
  readonly identity: (entry: Entry) => string
  readonly read: Effect.Effect<ReadonlyArray<Entry>, StoreFailure>
  readonly fromDocument: (document: Configuration) => ReadonlyArray<Entry> | undefined
  readonly create?: (entry: Entry) => Write
  /** `changed` returns true if the field or a field inside it differs. */
  readonly update: (entry: Entry, changed: (field: string) => boolean) => Write
  readonly remove?: (entry: Entry) => Write
  /** Selects entries that stay if the document omits them. Without `remove`, all entries stay by default. */
  readonly isKept?: (entry: Schema.JsonObject) => boolean
  /** Changes run in ascending rank. An object is written before objects that refer to it, and deleted after them. */
  readonly rank: (action: ConfigurationDiff.EntryChange["action"], entry: Entry) => number
  readonly summary?: (
    entry: Entry,
    difference: ConfigurationDiff.EntryChange,
    current: ConfigurationState
  ) => string | null
}

export interface ConfigurationStep {
  readonly change: ConfigurationChange
  readonly rank: number
  readonly write: Write
}

/** A `KindDefinition` whose entry type is hidden, so that different kinds fit into one list. */
export interface ConfigurationKind {
  readonly section: Section
  readonly currentEntries: Effect.Effect<EntriesById, StoreFailure>
  /** Returns the content of the section, or `undefined` if the document omits the section. */
  readonly toDocument: (state: EntriesById) => Schema.Json | undefined
  readonly steps: (
    current: ConfigurationState,
    document: Configuration
  ) => Effect.Effect<ReadonlyArray<ConfigurationStep>, InvalidDocument>
}

export const makeKind = <Entry>(definition: KindDefinition<Entry>): ConfigurationKind => {
  const { create, identity, rank, read, remove, schema, section, summary, update, fromDocument } = definition
  const { isKept = () => remove === undefined } = definition
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

  const stepOf = Effect.fnUntraced(function* (difference: ConfigurationDiff.EntryChange, current: ConfigurationState) {
    const { action, after, before, fields, id } = difference
    const entry = yield* Effect.orDie(decode(after ?? before ?? {}))
    const changed = (field: string) => fields.some(({ path }) => path === field || path.startsWith(`${field}.`))
    const write = { create, update: (updated: Entry) => update(updated, changed), delete: remove }[action]
    if (write === undefined) {
      return yield* invalidDocument(
        section,
        id,
        "does not exist, and a document cannot create it because documents contain no secrets"
      )
    }
    return {
      change: {
        section,
        id,
        action,
        before,
        after,
        fields,
        summary: summary === undefined ? null : summary(entry, difference, current)
      },
      rank: rank(action, entry),
      write: write(entry)
    }
  })

  return {
    section,
    currentEntries: Effect.flatMap(read, entriesOf),
    // Entries are sorted, so that equal configurations export equal text.
    toDocument: (state) => [...state].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, entry]) => entry),
    steps: Effect.fnUntraced(function* (current, document) {
      const documentEntries = fromDocument(document)
      if (documentEntries === undefined) return []
      const before = current.get(section) ?? new Map()
      const after = yield* entriesOf(documentEntries)
      if (after.size < documentEntries.length) return yield* invalidDocument(section, "", "lists an object twice")
      const keptEntries = [...before].filter(([, entry]) => isKept(entry))
      return yield* Effect.forEach(
        ConfigurationDiff.diffEntries(before, new Map([...keptEntries, ...after])),
        (difference) => stepOf(difference, current)
      )
    })
  }
}

/** A section that contains one settings object. The object can be changed but not deleted. */
export const makeSettingsKind = <Entry>(definition: {
  readonly section: Section
  readonly schema: Schema.Codec<Entry, unknown>
  /** Returns `undefined` if no settings are stored. */
  readonly read: Effect.Effect<Entry | undefined, StoreFailure>
  readonly fromDocument: (document: Configuration) => Entry | undefined
  readonly update: (entry: Entry) => Write
  readonly rank: number
  readonly summary?: KindDefinition<Entry>["summary"]
}): ConfigurationKind => {
  const { rank, read, schema, section, summary, update, fromDocument } = definition
  const kind = makeKind<Entry>({
    section,
    schema,
    identity: () => "singleton",
    read: Effect.map(read, (entry) => (entry === undefined ? [] : [entry])),
    fromDocument: (document) => {
      const entry = fromDocument(document)
      return entry && [entry]
    },
    create: update,
    update,
    rank: () => rank,
    ...(summary && { summary })
  })
  return { ...kind, toDocument: (state) => [...state.values()][0] }
}

export const invalidDocument = (section: string, id: string, reason: string): InvalidDocument =>
  new ControlError("invalid_configuration_document", `${section}${id && ` ${id}`} ${reason}.`, { param: section })
