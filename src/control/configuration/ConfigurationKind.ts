import { Effect, Schema } from "effect"
import type { Configuration, ConfigurationChange } from "../api/ConfigurationApi.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import type { Actor } from "../audit/Audit.ts"
import type { StoreFailure } from "../store/Store.ts"
import * as Difference from "./Difference.ts"

export type Invalid = Refused<"invalid_configuration_document">

/** The name of a list, or of one set of settings, in the document. */
export type Section = Exclude<keyof Configuration, "format">

/** What there is, by section and identity. */
export type States = ReadonlyMap<Section, Difference.Entries>

/** What a change may fail with: whatever the endpoint of its object refuses. */
export type Write = Effect.Effect<unknown, ControlError, Actor>

/** How one kind of object is read and written. What has no `create` or `remove` is neither made nor removed here. */
export interface Definition<Entry> {
  readonly section: Section
  readonly schema: Schema.Codec<Entry, unknown>
  /** What the configuration knows it by. */
  readonly identity: (entry: Entry) => string
  readonly read: Effect.Effect<ReadonlyArray<Entry>, StoreFailure>
  readonly wanted: (document: Configuration) => ReadonlyArray<Entry> | undefined
  readonly create?: (entry: Entry) => Write
  /** `changed` says of a field of the entry whether there is anything new in it. */
  readonly update: (entry: Entry, changed: (field: string) => boolean) => Write
  readonly remove?: (entry: Entry) => Write
  /** What stays although a document does not name it, where others are removed. */
  readonly stays?: (entry: Schema.JsonObject) => boolean
  /** Lower goes first: what others refer to is there before them and goes after them. */
  readonly rank: (action: Difference.Difference["action"], entry: Entry) => number
  readonly summary?: (entry: Entry, difference: Difference.Difference, held: States) => string | null
}

/** One change, and the writing of it. */
export interface Step {
  readonly change: ConfigurationChange
  readonly rank: number
  readonly write: Write
}

/** A kind of object, as what compares and applies sees every one of them. */
export interface Kind {
  readonly section: Section
  /** What there is, by identity. */
  readonly state: Effect.Effect<Difference.Entries, StoreFailure>
  /** The section of a document that says so; `undefined` where it says nothing. */
  readonly written: (state: Difference.Entries) => Schema.Json | undefined
  readonly steps: (held: States, document: Configuration) => Effect.Effect<ReadonlyArray<Step>, Invalid>
}

export const kindOf = <Entry>(definition: Definition<Entry>): Kind => {
  const { create, identity, rank, read, remove, schema, section, summary, update, wanted } = definition
  const { stays = () => remove === undefined } = definition
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

  const stepOf = Effect.fnUntraced(function* (difference: Difference.Difference, held: States) {
    const { action, after, before, fields, id } = difference
    const entry = yield* Effect.orDie(decode(after ?? before ?? {}))
    const changed = (field: string) => fields.some(({ path }) => path === field || path.startsWith(`${field}.`))
    const write = { create, update: (wanted: Entry) => update(wanted, changed), delete: remove }[action]
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
        summary: summary === undefined ? null : summary(entry, difference, held)
      },
      rank: rank(action, entry),
      write: write(entry)
    }
  })

  return {
    section,
    state: Effect.flatMap(read, entriesOf),
    // the same text for the same configuration
    written: (state) => [...state].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, entry]) => entry),
    steps: Effect.fnUntraced(function* (held, document) {
      const named = wanted(document)
      if (named === undefined) return []
      const before = held.get(section) ?? new Map()
      const after = yield* entriesOf(named)
      if (after.size < named.length) return yield* invalid(section, "", "names an object twice")
      const kept = [...before].filter(([, entry]) => stays(entry))
      return yield* Effect.forEach(Difference.between(before, new Map([...kept, ...after])), (difference) =>
        stepOf(difference, held)
      )
    })
  }
}

/** Settings of which there is one set: changed, never removed. */
export const settingsOf = <Entry>(definition: {
  readonly section: Section
  readonly schema: Schema.Codec<Entry, unknown>
  /** `undefined`: nobody has decided anything yet. */
  readonly read: Effect.Effect<Entry | undefined, StoreFailure>
  readonly wanted: (document: Configuration) => Entry | undefined
  readonly update: (entry: Entry) => Write
  readonly rank: number
  readonly summary?: Definition<Entry>["summary"]
}): Kind => {
  const { rank, read, schema, section, summary, update, wanted } = definition
  const kind = kindOf<Entry>({
    section,
    schema,
    identity: () => "singleton",
    read: Effect.map(read, (entry) => (entry === undefined ? [] : [entry])),
    wanted: (document) => {
      const entry = wanted(document)
      return entry && [entry]
    },
    create: update,
    update,
    rank: () => rank,
    ...(summary && { summary })
  })
  return { ...kind, written: (state) => [...state.values()][0] }
}

export const invalid = (section: string, id: string, reason: string): Invalid =>
  new ControlError("invalid_configuration_document", `${section}${id && ` ${id}`} ${reason}.`, { param: section })
