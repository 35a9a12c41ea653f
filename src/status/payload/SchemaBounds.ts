import { isJsonObject } from "../../messaging/envelope/Envelope.ts"
import type { Check, Keyword } from "./SchemaVisit.ts"

/** A bound of a number that is derived from the value. `undefined`: the keyword does not apply to the value. */
const bound =
  (
    measure: (value: unknown, check: Check) => number | undefined,
    isWithin: (measured: number, limit: number) => boolean,
    words: (limit: number) => string
  ): Keyword =>
  ({ at, tells, value }, argument, check) => {
    const measured = measure(value, check)
    if (measured === undefined || typeof argument !== "number") return "fits"
    return isWithin(measured, argument) ? "fits" : check.fail(words(argument), at, tells)
  }

const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`

const isAtLeast = (measured: number, limit: number): boolean => measured >= limit
const isAtMost = (measured: number, limit: number): boolean => measured <= limit

const valueOf = (value: unknown) => (typeof value === "number" ? value : undefined)
/** Handlers count UTF-16 units. */
const lengthOf = (value: unknown) => (typeof value === "string" ? value.length : undefined)
const itemsOf = (value: unknown) => (Array.isArray(value) ? value.length : undefined)
const membersOf = (value: unknown, check: Check) => (isJsonObject(value) ? check.namesOf(value).length : undefined)

const isMultiple = (value: number, of: number): boolean => {
  const quotient = value / of
  return Math.abs(quotient - Math.round(quotient)) <= Math.abs(quotient) * 1e-12
}

/** The keywords that bound numbers, lengths and counts. */
export const bounds: ReadonlyArray<readonly [name: string, keyword: Keyword]> = [
  ["minProperties", bound(membersOf, isAtLeast, (limit) => `must have at least ${counted(limit, "member")}`)],
  ["maxProperties", bound(membersOf, isAtMost, (limit) => `must have at most ${counted(limit, "member")}`)],
  ["minItems", bound(itemsOf, isAtLeast, (limit) => `must have at least ${counted(limit, "item")}`)],
  ["maxItems", bound(itemsOf, isAtMost, (limit) => `must have at most ${counted(limit, "item")}`)],
  ["minLength", bound(lengthOf, isAtLeast, (limit) => `must have at least ${counted(limit, "character")}`)],
  ["maxLength", bound(lengthOf, isAtMost, (limit) => `must have at most ${counted(limit, "character")}`)],
  ["minimum", bound(valueOf, isAtLeast, (limit) => `must be at least ${limit}`)],
  ["maximum", bound(valueOf, isAtMost, (limit) => `must be at most ${limit}`)],
  [
    "exclusiveMinimum",
    bound(
      valueOf,
      (value, limit) => value > limit,
      (limit) => `must be more than ${limit}`
    )
  ],
  [
    "exclusiveMaximum",
    bound(
      valueOf,
      (value, limit) => value < limit,
      (limit) => `must be less than ${limit}`
    )
  ],
  ["multipleOf", bound(valueOf, isMultiple, (limit) => `must be a multiple of ${limit}`)]
]
