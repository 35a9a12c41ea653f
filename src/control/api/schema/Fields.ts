import { Clock, DateTime, Effect, Schema, SchemaIssue, SchemaTransformation } from "effect"

/** Ids are made by the server; what is not one names nothing. */
export const Id = Schema.String.check(Schema.isGUID({ expected: "an id (UUID)" }))

const rfc3339 = /^(\d{4}-\d{2}-\d{2})[Tt]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})$/

/** The parser of the language moves the 30th of February into March; an operator did not mean that. */
const isInstant = (text: string): boolean => {
  const day = rfc3339.exec(text)?.[1]
  return day !== undefined && !Number.isNaN(Date.parse(text)) && new Date(day).toISOString().startsWith(day)
}

/** RFC 3339, with an offset; always written in UTC. */
export const Timestamp = Schema.String.check(
  Schema.makeFilter(isInstant, {
    expected: "a date and time with its offset, such as 2026-01-31T12:00:00Z",
    toJsonSchema: () => ({ format: "date-time" })
  })
).pipe(
  Schema.decodeTo(
    Schema.DateTimeUtc,
    SchemaTransformation.transform({
      decode: (text: string) => DateTime.toUtc(DateTime.makeUnsafe(text)),
      encode: DateTime.formatIso
    })
  )
)

const date = /^\d{4}-\d{2}-\d{2}$/
const dayMs = 86_400_000

const isRangeTime = (text: string): boolean =>
  text === "now" ||
  text === "today" ||
  text === "yesterday" ||
  (date.test(text) ? isInstant(`${text}T00:00:00Z`) : isInstant(text))

/** Days are those of UTC, and a day is the moment at which it begins. */
const resolveRangeTime = (text: string, now: number): number => {
  const today = now - (now % dayMs)
  switch (text) {
    case "now":
      return now
    case "today":
      return today
    case "yesterday":
      return today - dayMs
    default:
      return Date.parse(text)
  }
}

/**
 * An end of a range of time, as people say it: `yesterday` and a date (`2026-01-31`) stand for the beginning of that day
 * in UTC, so that from `yesterday` to `today` is all of yesterday.
 */
export const RangeTime = Schema.String.check(
  Schema.makeFilter(isRangeTime, {
    expected:
      'a date and time with its offset, such as 2026-01-31T12:00:00Z, a date, such as 2026-01-31, or "yesterday", "today" or "now" (days begin at 00:00 UTC)'
  })
).pipe(
  Schema.decodeTo(
    Schema.DateTimeUtc,
    SchemaTransformation.transformEffect({
      decode: (text: string) =>
        Effect.map(Clock.currentTimeMillis, (now) => DateTime.toUtc(DateTime.makeUnsafe(resolveRangeTime(text, now)))),
      encode: (time) => Effect.succeed(DateTime.formatIso(time))
    })
  )
)

/** How many rows a page may hold. */
export const PageLimit = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 500 }))

const CursorPosition = Schema.Struct({
  /** Microseconds since 1970: all that the database keeps of a time, where a `Date` would round. */
  micros: Schema.Int,
  id: Id
})

const PositionText = Schema.StringFromBase64Url.pipe(Schema.decodeTo(Schema.fromJsonString(CursorPosition)))
const decodePosition = Schema.decodeUnknownOption(PositionText)

/** Where the next page begins in a list ordered by time and id, as the server gave it. Opaque to clients. */
export const Cursor = Schema.String.pipe(
  Schema.decodeTo(
    Schema.toType(CursorPosition),
    SchemaTransformation.transformEffect({
      decode: (text: string, options) =>
        Effect.mapError(
          Effect.fromOption(decodePosition(text)),
          () => new SchemaIssue.InvalidValue({ expected: "a cursor as this API gave it" }, text, options)
        ),
      encode: (position) => Effect.mapError(Schema.encodeEffect(PositionText)(position), (error) => error.issue)
    })
  )
)
export type Cursor = typeof Cursor.Type

/** A list whose body is a plain array says in this header where it goes on; without the header it is complete. */
export const NextCursor = { "x-next-cursor": Schema.optionalKey(Cursor) }

/** The time of creation and of the last change. */
export const timestamps = { created_at: Timestamp, updated_at: Timestamp }

/** A whole number from 1, with its range in words: a rule refuses what is beyond it, by a code of its own. */
export const upTo = (most: number, unit: string) => Schema.Int.annotate({ description: `${unit}, 1 to ${most}.` })

/** In the answer to a change of an address, and in its audit event. */
export const CredentialCleared = Schema.optionalKey(Schema.Literal(true)).annotate({
  description:
    "The stored credential was removed, because the address moved to another scheme, host or port and no new credential came with it."
})

/**
 * In place of an object whose stored row this version cannot decode, because a newer version wrote it. `id` is what its
 * path calls it.
 */
export const Unreadable = Schema.Struct({ id: Schema.String, unreadable: Schema.Literal(true) })
export type Unreadable = typeof Unreadable.Type

/** The object as it is afterwards, or that it was done to one that cannot be shown. */
export const orUnreadable = <S extends Schema.Constraint>(shape: S) => Schema.Union([shape, Unreadable])

export const isUnreadable = Schema.is(Unreadable)
