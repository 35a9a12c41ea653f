import { Effect, Schema, SchemaIssue, SchemaTransformation } from "effect"

/**
 * A point in time as an ISO 8601 text in UTC with `Z`. It has six fractional digits unless they are all zero. A `Date`
 * would lose the microseconds of other producers. Compare timestamps only with `compare`, because the text `…:00Z`
 * sorts after `…:00.5Z`.
 *
 * Decoding accepts any ISO 8601 date-time, in UTC if it has no offset. It also accepts numbers since 1970. Numbers
 * above 20,000,000,000 are milliseconds, other numbers are seconds.
 */
export const Timestamp = Schema.Unknown.pipe(
  Schema.decodeTo(
    Schema.String,
    SchemaTransformation.transformEffect({
      decode: (input: unknown, options) => {
        if (typeof input === "string" && canonical.test(input)) return Effect.succeed(input)
        const instant = typeof input === "number" ? ofEpoch(input) : typeof input === "string" ? read(input) : undefined
        return instant === undefined
          ? Effect.fail(
              new SchemaIssue.InvalidValue({ expected: "an ISO 8601 date-time or an epoch number" }, input, options)
            )
          : Effect.succeed(write(instant))
      },
      encode: (text: string) => Effect.succeed<unknown>(text)
    })
  )
)
export type Timestamp = typeof Timestamp.Type

/** Formats a time. The last result is cached, because a busy process formats the same millisecond many times. */
export const ofMillis = (millis: number): Timestamp => {
  const whole = Math.trunc(millis)
  if (whole !== lastFormatted.millis) lastFormatted = { millis: whole, text: write({ millis: whole, micros: 0 }) }
  return lastFormatted.text
}

let lastFormatted = { millis: Number.NaN, text: "" }

/** Returns milliseconds since 1970, without microseconds. Returns `NaN` for an invalid timestamp. */
export const toMillis = (timestamp: Timestamp): number =>
  canonical.test(timestamp) ? Date.parse(timestamp) : (read(timestamp)?.millis ?? Number.NaN)

/** Returns microseconds since 1970, exact until the year 2255. Returns `NaN` for an invalid timestamp. */
export const toMicros = (timestamp: Timestamp): number => {
  const instant = read(timestamp)
  return instant === undefined ? Number.NaN : instant.millis * 1000 + instant.micros
}

export const compare = (left: Timestamp, right: Timestamp): number => {
  const one = read(left)
  const other = read(right)
  if (one === undefined || other === undefined) return left < right ? -1 : left > right ? 1 : 0
  return one.millis - other.millis || one.micros - other.micros
}

export const withOffset = (timestamp: Timestamp): string => timestamp.replace(/Z$/, "+00:00")

interface Instant {
  readonly millis: number
  readonly micros: number
}

const millisThreshold = 2e10

const earliest = -62_135_596_800_000

const ofEpoch = (epoch: number): Instant | undefined => {
  const micros = Math.round(epoch * (Math.abs(epoch) > millisThreshold ? 1e3 : 1e6))
  const millis = Math.floor(micros / 1000)
  return inRange(millis) ? { millis, micros: micros - millis * 1000 } : undefined
}

/** Returns whether decoding would not change the text. Takes a tenth of the time of decoding. */
export const isCanonical = (value: unknown): value is Timestamp => typeof value === "string" && canonical.test(value)

const canonical = (() => {
  const longMonths = "(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])"
  const shortMonths = "(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)"
  const february = "02-(?:0[1-9]|1\\d|2[0-8])"
  const time = "(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.(?!000000)\\d{6})?Z"
  return new RegExp(`^(?!0000)\\d{4}-(?:${longMonths}|${shortMonths}|${february})T${time}$`)
})()

const iso = /^(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?(?:([Zz])|([+-])(\d{2}):?(\d{2}))?$/

const read = (text: string): Instant | undefined => {
  const found = iso.exec(text)
  if (found === null) return undefined
  const [, date, time, seconds = "00", fraction = "", , sign, hours = "0", minutes = "0"] = found
  const digits = fraction.padEnd(6, "0").slice(0, 6)
  const millis = Date.parse(`${date}T${time}:${seconds}.${digits.slice(0, 3)}Z`)
  // `Date.parse` changes 30 February to a day in March, and 24:00 to the next day. This comparison detects the change.
  if (Number.isNaN(millis) || !new Date(millis).toISOString().startsWith(`${date}T${time}:${seconds}`)) return undefined
  const offset = (Number(hours) * 60 + Number(minutes)) * 60_000
  const instant = sign === "-" ? millis + offset : sign === "+" ? millis - offset : millis
  return Number(hours) < 24 && Number(minutes) < 60 && inRange(instant)
    ? { millis: instant, micros: Number(digits.slice(3)) }
    : undefined
}

const inRange = (millis: number): boolean => millis >= earliest && millis < 253_402_300_800_000

const write = ({ micros, millis }: Instant): string => {
  const text = new Date(millis).toISOString()
  const fraction = text.slice(20, 23) + String(micros).padStart(3, "0")
  return `${text.slice(0, 19)}${fraction === "000000" ? "" : `.${fraction}`}Z`
}
