import { Effect, Schema } from "effect"
import type { Actor } from "./Audit.ts"
import type { Configuration, ConfigurationChange } from "./api/ConfigurationApi.ts"
import { ControlError, type Refused } from "./api/Errors.ts"
import * as Difference from "./Difference.ts"
import type { StoreFailure } from "./Store.ts"

export type Invalid = Refused<"invalid_configuration_document">

/** The name of a list in the document. */
export type Section = Exclude<keyof Configuration, "format">

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
  readonly update: (entry: Entry) => Write
  readonly remove?: (entry: Entry) => Write
  /** Lower goes first: what others refer to is there before them and goes after them. */
  readonly rank: (action: Difference.Difference["action"], entry: Entry) => number
  readonly summary?: (entry: Entry, fields: ReadonlyArray<Difference.FieldDifference>) => string
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
  readonly steps: (state: Difference.Entries, document: Configuration) => Effect.Effect<ReadonlyArray<Step>, Invalid>
}

export const kindOf = <Entry>(definition: Definition<Entry>): Kind => {
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

export const invalid = (section: string, id: string, reason: string): Invalid =>
  new ControlError("invalid_configuration_document", `${section}${id && ` ${id}`} ${reason}.`, { param: section })
