import { Result, Schema } from "effect"
import { EnvelopeError, type EnvelopeKind, type Mistake, mistakesOf } from "./Errors.ts"
import * as ExactJson from "./ExactJson.ts"

/** A JSON object. Its members are not validated. */
export interface JsonObject {
  readonly [name: string]: unknown
}

/**
 * Forbids the camelCase forms of an envelope's members, such as `taskId`. Envelopes accept additional members. Without
 * this type, the compiler would accept `taskId` as an additional member.
 */
export type NoCamelCaseMembers<Fields> = { readonly [Name in keyof Fields as CamelCase<Name>]?: IsNamed<Name> }

/** No value has this type. The compiler's error about `taskId` names it, and with it the member: `IsNamed<"task_id">`. */
interface IsNamed<Name> {
  readonly [isNamed]: Name
}

declare const isNamed: unique symbol

type CamelCase<Name> = Name extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalized<Tail>}` : never
type Capitalized<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Capitalize<Head>}${Capitalized<Tail>}`
  : Capitalize<Name>

export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value)

/** Returns whether `JSON.stringify` keeps all members. It writes a `Date` as a text and a `Map` as an empty object. */
export const isWritableObject = (value: unknown): value is JsonObject =>
  isJsonObject(value) && typeof value["toJSON"] !== "function" && !(value instanceof Map || value instanceof Set)

export const JsonObject = Schema.declare(isWritableObject, { expected: "a JSON object" })

/** AMQP encodes routing keys, queue names and correlation ids as short strings of at most 255 bytes of UTF-8. */
export const maxShortBytes = 255

export const fitsShortString = (text: string): boolean =>
  text.length <= maxShortBytes / 3 || Buffer.byteLength(text) <= maxShortBytes

/** Returns whether UTF-8 can represent a text. UTF-8 encoders replace lone surrogates, which would change a task id. */
export const isWellFormed = (text: string): boolean => text.isWellFormed()

export const textExpected = "well-formed Unicode without lone surrogates"

export const isShortText = (value: unknown): value is string =>
  typeof value === "string" && fitsShortString(value) && isWellFormed(value)

export const isIdentity = (value: unknown): value is string => isShortText(value) && value.trim() !== ""

export const ShortText = Schema.String.check(
  Schema.makeFilter(fitsShortString, { expected: `at most ${maxShortBytes} bytes of UTF-8` }),
  Schema.makeFilter(isWellFormed, { expected: textExpected })
)

/** A task id. It is also the routing key of the task's statuses. */
export const Identity = ShortText.check(
  Schema.makeFilter((text) => text.trim() !== "", { expected: "a text that is not blank" })
)

export const specVersion = "1.0"

interface EnvelopeRules<Envelope extends object> {
  readonly kind: EnvelopeKind
  readonly schema: Schema.Codec<Envelope, unknown> & { readonly fields: object }
  /** Fields in which `null` means that the field is missing. In other fields, `null` is an error. */
  readonly nullable: ReadonlyArray<string>
  /** Returns true only if decoding would not change the envelope. Takes a tenth of the time of decoding. */
  readonly isExact?: (known: JsonObject) => known is Envelope & JsonObject
}

/**
 * Creates a function that decodes an envelope and reports all errors at once. `defaults` replace missing members.
 * Undeclared members follow the declared members. Undeclared members that are `null` are dropped.
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
  // Collecting all errors triples the cost of decoding. Only invalid envelopes are decoded in this way.
  const decode = Schema.decodeUnknownResult(schema)
  const decodeForMistakes = Schema.decodeUnknownResult(schema, { errors: "all" })
  return (input: unknown, defaults: JsonObject): Result.Result<Envelope & JsonObject, EnvelopeError> => {
    if (!isJsonObject(input)) return Result.fail(EnvelopeError.invalid(kind, [{ field: "", problem: notAnObject }]))
    const given: Record<string, unknown> = { ...defaults }
    const extras: Array<readonly [string, unknown]> = []
    for (const name of Object.keys(input)) {
      const value = input[name]
      // JSON has neither `undefined` nor functions. `JSON.stringify` would call a function with the name `toJSON`.
      if (value === undefined || typeof value === "function") continue
      if (!declared.has(name)) {
        if (value !== null) extras.push([name, value])
      } else if (value !== null || !mayBeNull.has(name)) {
        given[name] = value
      }
    }
    // The order of members is fixed, because `JSON.stringify` is twice as fast for objects of the same shape.
    const known: Record<string, unknown> = {}
    for (const name of names) if (given[name] !== undefined) known[name] = given[name]
    // Assigning to the member `__proto__` would change the prototype. `Object.fromEntries` creates a normal member.
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
const tooDeep = "is nested too deeply for a body with numbers of 2^53 or more"

// The decoder throws an error for invalid UTF-8. It keeps a byte order mark, which `JSON.parse` then refuses.
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** Decodes the body of a message as a JSON object. Errors name `kind` as the expected envelope. */
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
    // The error of `JSON.parse` is dropped, because its message quotes a part of the body.
    return Result.fail(EnvelopeError.malformed(kind, cause instanceof RangeError ? tooDeep : "is not JSON"))
  }
  const { exact, ordinary } = value
  return isJsonObject(exact) && isJsonObject(ordinary)
    ? Result.succeed({ exact, ordinary })
    : Result.fail(EnvelopeError.invalid(kind, [{ field: "", problem: notAnObject }]))
}

/** Serialises a message without spaces. Omits top-level members that are `null`, but keeps nested ones. */
export const encode = (kind: EnvelopeKind, envelope: JsonObject): Result.Result<Uint8Array, EnvelopeError> => {
  try {
    return Result.succeed(Buffer.from(JSON.stringify(withoutNulls(envelope))))
  } catch (cause) {
    const mistakes: ReadonlyArray<Mistake> = [{ field: "", problem: serializationProblem(cause) }]
    return Result.fail(EnvelopeError.invalid(kind, mistakes))
  }
}

export const serializationProblem = (thrown: unknown): string =>
  thrown instanceof RangeError ? "is nested too deeply or is too large" : "contains a value that JSON cannot represent"

const withoutNulls = (envelope: JsonObject): JsonObject => {
  for (const name in envelope) {
    if (envelope[name] === null)
      return Object.fromEntries(Object.entries(envelope).filter(([, value]) => value !== null))
  }
  return envelope
}
