import { Result, Schema } from "effect"
import { EnvelopeError, type EnvelopeKind, type Mistake, mistakesOf } from "./Errors.ts"

/** A JSON object as it was parsed: nothing inside it is checked, renamed or copied. */
export interface JsonObject {
  readonly [name: string]: unknown
}

export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

export const JsonObject = Schema.declare(isJsonObject, { expected: "a JSON object" })

/** AMQP carries routing keys, queue names and correlation ids as short strings: at most 255 bytes of UTF-8. */
export const maxShortBytes = 255

export const isShort = (text: string): boolean =>
  text.length <= maxShortBytes / 3 || Buffer.byteLength(text) <= maxShortBytes

/** Becomes an AMQP property or a routing key. */
export const ShortText = Schema.String.check(
  Schema.makeFilter(isShort, { expected: `at most ${maxShortBytes} bytes of UTF-8` })
)

/** Also the routing key of a status, hence neither blank nor long. */
export const Identity = ShortText.check(
  Schema.makeFilter((text) => text.trim() !== "", { expected: "something else than blanks" })
)

export const specVersion = "1.0"

/** How an envelope is read. The members of `schema` stand in the order of the wire. */
export interface Rules<Envelope extends object> {
  readonly kind: EnvelopeKind
  readonly schema: Schema.Codec<Envelope, unknown> & { readonly fields: object }
  /** Whose `null` means that they are missing; the `null` of others is a mistake. */
  readonly nullable: ReadonlyArray<string>
}

/**
 * Reads an envelope from what JSON gave or a program wrote. Fields that nobody declared are kept, behind the declared
 * ones; those that are `null` are dropped, as writing them would drop them too. All mistakes are reported at once.
 * `defaults`: for declared fields that are missing.
 */
export const reader = <Envelope extends object>({ kind, nullable, schema }: Rules<Envelope>) => {
  const declared = new Set(Object.keys(schema.fields))
  const mayBeNull = new Set(nullable)
  // Collecting mistakes costs a good envelope three times the check: what has one is read again, for all of them.
  const decode = Schema.decodeUnknownResult(schema)
  const decodeForMistakes = Schema.decodeUnknownResult(schema, { errors: "all" })
  return (input: unknown, defaults: JsonObject): Result.Result<Envelope & JsonObject, EnvelopeError> => {
    if (!isJsonObject(input)) return Result.fail(EnvelopeError.invalid(kind, [{ field: "", problem: notAnObject }]))
    const known: Record<string, unknown> = { ...defaults }
    const extras: Array<readonly [string, unknown]> = []
    for (const [name, value] of Object.entries(input)) {
      if (value === undefined) continue
      if (!declared.has(name)) {
        if (value !== null) extras.push([name, value])
      } else if (value !== null || !mayBeNull.has(name)) {
        known[name] = value
      }
    }
    const decoded = Result.orElse(decode(known), () => decodeForMistakes(known))
    if (Result.isFailure(decoded)) return Result.fail(EnvelopeError.invalid(kind, mistakesOf(decoded.failure.issue)))
    // own data properties, also for a field called __proto__
    const rest: JsonObject = extras.length === 0 ? none : Object.fromEntries(extras)
    return Result.succeed({ ...decoded.success, ...rest })
  }
}

const none: JsonObject = {}
const notAnObject = "must be a JSON object"

// Invalid UTF-8 is an error, and a byte order mark is not JSON.
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** The JSON object in the body of a message. `kind`: what it should have been, for the error. */
export const parse = (kind: EnvelopeKind, body: Uint8Array): Result.Result<JsonObject, EnvelopeError> => {
  let text: string
  try {
    text = utf8.decode(body)
  } catch {
    return Result.fail(EnvelopeError.malformed(kind, "is not UTF-8"))
  }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // the engine's message would repeat a part of the body
    return Result.fail(EnvelopeError.malformed(kind, "is not JSON"))
  }
  return isJsonObject(value)
    ? Result.succeed(value)
    : Result.fail(EnvelopeError.invalid(kind, [{ field: "", problem: notAnObject }]))
}

/** The bytes of a message: JSON without spaces. Top-level fields that are `null` are left out; inside they stay. */
export const encode = (kind: EnvelopeKind, envelope: JsonObject): Result.Result<Uint8Array, EnvelopeError> => {
  try {
    return Result.succeed(Buffer.from(JSON.stringify(withoutNulls(envelope))))
  } catch (cause) {
    // a cycle, a bigint, nesting beyond the stack: what a program can build and JSON cannot say
    const problem = cause instanceof RangeError ? "is nested too deeply" : "holds a value that JSON cannot express"
    const mistakes: ReadonlyArray<Mistake> = [{ field: "", problem }]
    return Result.fail(EnvelopeError.invalid(kind, mistakes))
  }
}

const withoutNulls = (envelope: JsonObject): JsonObject => {
  for (const name in envelope) {
    if (envelope[name] === null)
      return Object.fromEntries(Object.entries(envelope).filter(([, value]) => value !== null))
  }
  return envelope
}
