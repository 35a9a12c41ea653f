import { Result, Schema } from "effect"
import { EnvelopeError, type EnvelopeKind, type Mistake, mistakesOf } from "./Errors.ts"
import * as ExactJson from "./ExactJson.ts"

/** A JSON object as it was parsed: nothing inside it is checked, renamed or copied. */
export interface JsonObject {
  readonly [name: string]: unknown
}

/**
 * The names of an envelope's members in camelCase. The wire does not have them, and extra members are allowed: without
 * this the compiler would take a misspelt member for an extra one.
 */
export type NoCamelCaseMembers<Fields> = { readonly [Name in keyof Fields as CamelCase<Name>]?: never }

type CamelCase<Name> = Name extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalized<Tail>}` : never
type Capitalized<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Capitalize<Head>}${Capitalized<Tail>}`
  : Capitalize<Name>

export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value)

/** What JSON writes as the object that it is: a date would become a text, and of a map nothing would be left. */
export const isWritableObject = (value: unknown): value is JsonObject =>
  isJsonObject(value) && typeof value["toJSON"] !== "function" && !(value instanceof Map || value instanceof Set)

export const JsonObject = Schema.declare(isWritableObject, { expected: "a JSON object" })

/** AMQP carries routing keys, queue names and correlation ids as short strings: at most 255 bytes of UTF-8. */
export const maxShortBytes = 255

export const fitsShortString = (text: string): boolean =>
  text.length <= maxShortBytes / 3 || Buffer.byteLength(text) <= maxShortBytes

/** Half of a surrogate pair has no UTF-8: what is sent instead is another text, by which nothing is found again. */
export const isWellFormed = (text: string): boolean => text.isWellFormed()

export const textExpected = "well-formed Unicode, without half of a surrogate pair"

/** What `ShortText` takes. */
export const isShortText = (value: unknown): value is string =>
  typeof value === "string" && fitsShortString(value) && isWellFormed(value)

/** What `Identity` takes. */
export const isIdentity = (value: unknown): value is string => isShortText(value) && value.trim() !== ""

/** Becomes an AMQP property or a routing key. */
export const ShortText = Schema.String.check(
  Schema.makeFilter(fitsShortString, { expected: `at most ${maxShortBytes} bytes of UTF-8` }),
  Schema.makeFilter(isWellFormed, { expected: textExpected })
)

/** Also the routing key of a status, hence neither blank nor long. */
export const Identity = ShortText.check(
  Schema.makeFilter((text) => text.trim() !== "", { expected: "something else than blanks" })
)

export const specVersion = "1.0"

/** How an envelope is read. The members of `schema` stand in the order of the wire. */
export interface EnvelopeRules<Envelope extends object> {
  readonly kind: EnvelopeKind
  readonly schema: Schema.Codec<Envelope, unknown> & { readonly fields: object }
  /** Whose `null` means that they are missing; the `null` of others is a mistake. */
  readonly nullable: ReadonlyArray<string>
  /**
   * Tells, by a tenth of the work, what the schema would find nothing wrong with and leave as it is: almost every
   * envelope. It may miss some, and must not take any other.
   */
  readonly isExact?: (known: JsonObject) => known is Envelope & JsonObject
}

/**
 * Reads an envelope from what JSON gave or a program wrote. Fields that nobody declared are kept, behind the declared
 * ones; those that are `null` are dropped, as writing them would drop them too. All mistakes are reported at once.
 * `defaults`: for declared fields that are missing.
 */
export const makeReader = <Envelope extends object>({
  isExact = neverExact,
  kind,
  nullable,
  schema
}: EnvelopeRules<Envelope>) => {
  const names = Object.keys(schema.fields)
  const declared = new Set(names)
  const mayBeNull = new Set(nullable)
  // Collecting mistakes costs a good envelope three times the check: what has one is read again, for all of them.
  const decode = Schema.decodeUnknownResult(schema)
  const decodeForMistakes = Schema.decodeUnknownResult(schema, { errors: "all" })
  return (input: unknown, defaults: JsonObject): Result.Result<Envelope & JsonObject, EnvelopeError> => {
    if (!isJsonObject(input)) return Result.fail(EnvelopeError.invalid(kind, [{ field: "", problem: notAnObject }]))
    const given: Record<string, unknown> = { ...defaults }
    const extras: Array<readonly [string, unknown]> = []
    for (const name of Object.keys(input)) {
      const value = input[name]
      // JSON has no word for either, and would call one named toJSON
      if (value === undefined || typeof value === "function") continue
      if (!declared.has(name)) {
        if (value !== null) extras.push([name, value])
      } else if (value !== null || !mayBeNull.has(name)) {
        given[name] = value
      }
    }
    // always in the order of the wire: objects of one shape are also written at half the price
    const known: Record<string, unknown> = {}
    for (const name of names) if (given[name] !== undefined) known[name] = given[name]
    // own data properties, also for a field called __proto__
    const rest: JsonObject = extras.length === 0 ? noExtras : Object.fromEntries(extras)
    if (isExact(known)) return Result.succeed(rest === noExtras ? known : { ...known, ...rest })
    const decoded = Result.orElse(decode(known), () => decodeForMistakes(known))
    if (Result.isFailure(decoded)) return Result.fail(EnvelopeError.invalid(kind, mistakesOf(decoded.failure.issue)))
    return Result.succeed({ ...decoded.success, ...rest })
  }
}

const neverExact = (_known: JsonObject): _known is never => false

const noExtras: JsonObject = {}
const notAnObject = "must be a JSON object"
const tooDeep = "is nested too deeply for the numbers that it holds"

// Invalid UTF-8 is an error, and a byte order mark is not JSON.
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** The JSON object in the body of a message. `kind`: what it should have been, for the error. */
export const parse = (
  kind: EnvelopeKind,
  body: Uint8Array
): Result.Result<ExactJson.ExactAndOrdinary<JsonObject>, EnvelopeError> => {
  let text: string
  try {
    text = utf8.decode(body)
  } catch {
    return Result.fail(EnvelopeError.malformed(kind, "is not UTF-8"))
  }
  let value: ExactJson.ExactAndOrdinary<unknown>
  try {
    value = ExactJson.read(text)
  } catch (cause) {
    // the engine's message would repeat a part of the body
    return Result.fail(EnvelopeError.malformed(kind, cause instanceof RangeError ? tooDeep : "is not JSON"))
  }
  const { exact, ordinary } = value
  return isJsonObject(exact) && isJsonObject(ordinary)
    ? Result.succeed({ exact, ordinary })
    : Result.fail(EnvelopeError.invalid(kind, [{ field: "", problem: notAnObject }]))
}

/** The bytes of a message: JSON without spaces. Top-level fields that are `null` are left out; inside they stay. */
export const encode = (kind: EnvelopeKind, envelope: JsonObject): Result.Result<Uint8Array, EnvelopeError> => {
  try {
    return Result.succeed(Buffer.from(JSON.stringify(withoutNulls(envelope))))
  } catch (cause) {
    // a cycle, a bigint, nesting beyond the stack: what a program can build and JSON cannot say
    const mistakes: ReadonlyArray<Mistake> = [{ field: "", problem: serializationProblem(cause) }]
    return Result.fail(EnvelopeError.invalid(kind, mistakes))
  }
}

/** Why there is no JSON of a value, by what writing it threw. */
export const serializationProblem = (thrown: unknown): string =>
  thrown instanceof RangeError ? "is nested too deeply, or too large" : "holds a value that JSON cannot express"

const withoutNulls = (envelope: JsonObject): JsonObject => {
  for (const name in envelope) {
    if (envelope[name] === null)
      return Object.fromEntries(Object.entries(envelope).filter(([, value]) => value !== null))
  }
  return envelope
}
