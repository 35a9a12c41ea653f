import { Clock, DateTime, Effect, Schema, SchemaIssue, SchemaTransformation } from "effect"

/** The server generates every id as a UUID, so other texts are refused. */
export const Id = Schema.String.check(Schema.isGUID({ expected: "an id (UUID)" }))

export const isId = Schema.is(Id)

const rfc3339 = /^(\d{4}-\d{2}-\d{2})[Tt]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})$/

/** `Date.parse` turns the 30th of February into a day of March, so the day is compared with the parsed date. */
const isInstant = (text: string): boolean => {
  const day = rfc3339.exec(text)?.[1]
  return day !== undefined && !Number.isNaN(Date.parse(text)) && new Date(day).toISOString().startsWith(day)
}

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
 * The start or end of a time range. `yesterday` and a date (`2026-01-31`) mean 00:00 UTC of that day. The range from
 * `yesterday` to `today` therefore covers all of yesterday.
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

export const PageLimit = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 500 }))

const CursorPosition = Schema.Struct({
  /** Microseconds since 1970, which is the precision of the database. A `Date` has only milliseconds. */
  micros: Schema.Int,
  id: Id
})

/** Clients send a cursor back unchanged. */
const cursorOf = <T, E>(position: Schema.Codec<T, E>) => {
  const text = Schema.StringFromBase64Url.pipe(Schema.decodeTo(Schema.fromJsonString(position)))
  const decode = Schema.decodeUnknownOption(text)
  return Schema.String.pipe(
    Schema.decodeTo(
      Schema.toType(position),
      SchemaTransformation.transformEffect({
        decode: (encoded: string, options) =>
          Effect.mapError(
            Effect.fromOption(decode(encoded)),
            () => new SchemaIssue.InvalidValue({ expected: "a cursor that this API returned" }, encoded, options)
          ),
        encode: (decoded) => Effect.mapError(Schema.encodeEffect(text)(decoded), (error) => error.issue)
      })
    )
  )
}

/** The position of the next page in a list that is sorted by time and id. */
export const Cursor = cursorOf(CursorPosition)
export type Cursor = typeof Cursor.Type

/** The position of the next page in a list whose query chooses the order. */
export const SortedCursor = cursorOf(
  Schema.Struct({
    /** Identifies the query, because the position has no meaning in another one. */
    query: Schema.String,
    /** The sort key of the last row, as PostgreSQL writes it. */
    after: Schema.Array(Schema.String)
  })
)
export type SortedCursor = typeof SortedCursor.Type

/** The cursor of the next page, for responses that are plain arrays. Without this header there is no next page. */
export const NextCursor = { "x-next-cursor": Schema.optionalKey(Cursor) }

export const NextSortedCursor = { "x-next-cursor": Schema.optionalKey(SortedCursor) }

export const SortOrder = Schema.Literals(["asc", "desc"])
export type SortOrder = typeof SortOrder.Type

export const timestamps = { created_at: Timestamp, updated_at: Timestamp }

const expectedDescription =
  "The `updated_at` of the object as you read it. If the object has another one by now, nothing changes, and the response is 409 `changed_since_read`."

/** Refuses a change if somebody else changed the object since the caller read it. */
export const expectedUpdate = {
  expected_updated_at: Schema.optionalKey(Timestamp).annotate({ description: expectedDescription })
}

/** The same for settings that may not be stored: `null` expects that they are not. */
export const expectedUpdateOrNull = {
  expected_updated_at: Schema.optionalKey(Schema.NullOr(Timestamp)).annotate({
    description: `${expectedDescription} \`null\` expects that nothing is stored.`
  })
}

/** The schema only describes the range. The service checks the value, because it has its own error code. */
export const upTo = (maximum: number, unit: string) => Schema.Int.annotate({ description: `${unit}, 1 to ${maximum}.` })

/** Set if a new address removed the stored credential. The audit event of the change contains this flag too. */
export const CredentialCleared = Schema.optionalKey(Schema.Literal(true)).annotate({
  description:
    "The stored credential was removed, because the address moved to another scheme, host or port and the request contained no new credential."
})

/** Replaces a stored object that this version cannot decode, because a newer version wrote it. */
export const Unreadable = Schema.Struct({ id: Schema.String, unreadable: Schema.Literal(true) })
export type Unreadable = typeof Unreadable.Type

/** The object after the change, or `Unreadable` if this version cannot decode it. */
export const orUnreadable = <S extends Schema.Constraint>(shape: S) => Schema.Union([shape, Unreadable])

export const isUnreadable = Schema.is(Unreadable)
