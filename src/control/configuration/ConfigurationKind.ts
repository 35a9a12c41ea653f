import { Effect, Schema } from "effect"
import type { Configuration, ConfigurationChange } from "../api/ConfigurationApi.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import type { Actor } from "../audit/Audit.ts"
import type { StoreFailure } from "../store/Rows.ts"
import * as ConfigurationDiff from "./ConfigurationDiff.ts"

export type InvalidDocument = Refused<"invalid_configuration_document">

/** The name of a list, or of one set of settings, in the document. */
export type Section = Exclude<keyof Configuration, "format">

/** What there is, by section and identity. */
export type ConfigurationState = ReadonlyMap<Section, ConfigurationDiff.EntriesById>

/** What a change may fail with: whatever the endpoint of its object refuses. */
export type Write = Effect.Effect<unknown, ControlError, Actor>

/** How one kind of object is read and written. What has no `create` or `remove` is neither made nor removed here. */
export interface KindDefinition<Entry> {
  readonly section: Section
  readonly schema: Schema.Codec<Entry, unknown>
  /** What the configuration knows it by. */
  readonly identity: (entry: Entry) => string
  readonly read: Effect.Effect<ReadonlyArray<Entry>, StoreFailure>
  readonly fromDocument: (document: Configuration) => ReadonlyArray<Entry> | undefined
  readonly create?: (entry: Entry) => Write
  /** `changed` says of a field of the entry whether there is anything new in it. */
  readonly update: (entry: Entry, changed: (field: string) => boolean) => Write
  readonly remove?: (entry: Entry) => Write
  /** What stays although a document does not name it, where others are removed. */
  readonly isKept?: (entry: Schema.JsonObject) => boolean
  /** Lower goes first: what others refer to is there before them and goes after them. */
  readonly rank: (action: ConfigurationDiff.EntryChange["action"], entry: Entry) => number
  readonly summary?: (
    entry: Entry,
    difference: ConfigurationDiff.EntryChange,
    current: ConfigurationState
  ) => string | null
}

/** One change, and the writing of it. */
export interface ConfigurationStep {
  readonly change: ConfigurationChange
  readonly rank: number
  readonly write: Write
}

/** A kind of object, as what compares and applies sees every one of them. */
export interface ConfigurationKind {
  readonly section: Section
  /** What there is, by identity. */
  readonly currentEntries: Effect.Effect<ConfigurationDiff.EntriesById, StoreFailure>
  /** The section of a document that says so; `undefined` where it says nothing. */
  readonly toDocument: (state: ConfigurationDiff.EntriesById) => Schema.Json | undefined
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
    const write = { create, update: (wanted: Entry) => update(wanted, changed), delete: remove }[action]
    if (write === undefined) {
      return yield* invalidDocument(
        section,
        id,
        "is not there, and cannot be made by a document: its secret would be nowhere"
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
    // the same text for the same configuration
    toDocument: (state) => [...state].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, entry]) => entry),
    steps: Effect.fnUntraced(function* (current, document) {
      const documentEntries = fromDocument(document)
      if (documentEntries === undefined) return []
      const before = current.get(section) ?? new Map()
      const after = yield* entriesOf(documentEntries)
      if (after.size < documentEntries.length) return yield* invalidDocument(section, "", "names an object twice")
      const keptEntries = [...before].filter(([, entry]) => isKept(entry))
      return yield* Effect.forEach(
        ConfigurationDiff.diffEntries(before, new Map([...keptEntries, ...after])),
        (difference) => stepOf(difference, current)
      )
    })
  }
}

/** Settings of which there is one set: changed, never removed. */
export const makeSettingsKind = <Entry>(definition: {
  readonly section: Section
  readonly schema: Schema.Codec<Entry, unknown>
  /** `undefined`: nobody has decided anything yet. */
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
