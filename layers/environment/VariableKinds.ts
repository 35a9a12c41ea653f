import { availableParallelism } from "node:os"
import { Array as Arr, Effect, LogLevel, Predicate, Schema, SchemaGetter, SchemaIssue, String as Str } from "effect"
import { passthrough } from "effect/SchemaTransformation"
import { Scope } from "../../src/control/api/schema/Security.ts"
import { validateBaseUrl } from "../../src/control/store/Validation.ts"
import * as AuthSettings from "../../src/policy/AuthSettings.ts"
import { maxBodyBytes } from "../../src/policy/routes/CanonicalRoute.ts"
import { Ownership } from "../../src/policy/routes/Ownership.ts"
import { isPattern } from "../../src/policy/routes/Path.ts"
import * as UpstreamBase from "../../src/policy/routes/UpstreamBase.ts"
import { refusedUiPath } from "../../src/policy/routes/UpstreamPaths.ts"

/** Refuses every invalid value with `message`, which follows the variable's name and never contains the value. */
const refusedWith =
  (message: string) =>
  <S extends Schema.Constraint>(schema: S) =>
    Schema.catchDecoding<S>(() => Effect.fail(new SchemaIssue.InvalidValue({ message })))(schema)

/** A schema for text that `parse` converts. The text is refused if `parse` returns `undefined`. */
const parsed = <To extends Schema.Constraint>(
  to: To,
  message: string,
  parse: (text: string) => To["Encoded"] | undefined
) =>
  Schema.String.pipe(
    Schema.decodeTo(to, {
      decode: SchemaGetter.transformEffect((text) =>
        Effect.mapError(Effect.fromNullishOr(parse(text)), () => new SchemaIssue.InvalidValue())
      ),
      encode: SchemaGetter.forbiddenEncoding
    }),
    refusedWith(message)
  )

/** Accepts one of the words. The error message ends with `meaning`, which explains them. */
export const oneOf = <const Words extends ReadonlyArray<string>>(words: Words, meaning = "") =>
  Schema.Literals(words).pipe(refusedWith(`must be one of ${words.join(", ")}${meaning}`))

export const CompatOwnership = oneOf(
  Ownership.literals,
  ". It decides who may use objects that a key creates at the direct compatible upstream"
)

export const PrivateAddresses = oneOf(
  ["allow", "refuse"],
  ". It decides whether the gateway calls private and loopback addresses that no variable configures"
)

export const wholeNumber = (minimum: number, maximum?: number) =>
  parsed(
    Schema.Int.check(Schema.isBetween({ minimum, maximum: maximum ?? Number.MAX_SAFE_INTEGER })),
    `must be a whole number ${maximum === undefined ? `of at least ${minimum}` : `from ${minimum} to ${maximum}`}`,
    (text) => (/^\d+$/.test(text) ? Number(text) : undefined)
  )

/** Each worker takes a few hundred MiB of memory. */
export const maxWorkers = 64

/** The number of processes that share the proxy listener. `auto` is the number of processors that they may use. */
export const Workers = parsed(
  Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: maxWorkers })),
  `must be a whole number from 1 to ${maxWorkers}, or auto for one worker per processor`,
  (text) =>
    text === "auto" ? Math.min(maxWorkers, availableParallelism()) : /^\d+$/.test(text) ? Number(text) : undefined
)

export const BodyBytes = wholeNumber(1, maxBodyBytes)

/** The maximum is one hundred years. */
export const days = (minimum: number) => wholeNumber(minimum, 36_500)

export const Ratio = parsed(
  Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 })),
  "must be a number from 0 to 1: the fraction of traces to export",
  (text) => (/^[0-9.]+$/.test(text) ? Number(text) : undefined)
)

export const Flag = parsed(Schema.Boolean, "must be true, 1, yes, false, 0 or no", (text) =>
  /^(?:true|1|yes)$/i.test(text) ? true : /^(?:false|0|no)$/i.test(text) ? false : undefined
)

const visibleAscii = (most: number) =>
  Schema.String.check(Schema.isPattern(new RegExp(`^[\\x21-\\x7e]{1,${most}}$`))).pipe(
    refusedWith(`must be 1 to ${most} visible ASCII characters`)
  )
export const KeyPrefix = visibleAscii(64)
/** A word or two that fit on a badge. */
export const EnvironmentName = Schema.String.check(Schema.isPattern(/^[\p{L}\p{N}][\p{L}\p{N} ._/-]{0,31}$/u)).pipe(
  refusedWith("must be 1 to 32 letters, digits, spaces and . _ / -, such as production or staging eu")
)
export const Release = visibleAscii(64)
/** Only characters that a header value may contain. */
export const Credential = Schema.RedactedFromValue(visibleAscii(4096))

export const EncryptionKey = parsed(
  Schema.RedactedFromValue(Schema.Uint8Array),
  "must be 32 bytes in base64, as `openssl rand -base64 32` prints them",
  (text) => (/^[A-Za-z0-9+/]{43}=$/.test(text) ? Buffer.from(text, "base64") : undefined)
)

export const IdentityText = Schema.String.check(Schema.isMaxLength(512)).pipe(
  refusedWith("must have at most 512 characters")
)

export const Address = parsed(
  Schema.Struct({ host: Schema.String, port: Schema.Int.check(Schema.isLessThanOrEqualTo(65_535)) }),
  "must be host:port, such as 0.0.0.0:8080",
  (text) => {
    const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(text) ?? []
    const host = bracketed ?? plain
    return host === undefined ? undefined : { host, port: Number(port) }
  }
)

const url = (protocols: ReadonlyArray<string>) =>
  Schema.String.check(
    Schema.makeFilter((text: string) => {
      const found = URL.parse(text)
      return found !== null && protocols.includes(found.protocol) && found.hostname !== ""
    })
  )
const httpProtocols = ["http:", "https:"]

export const HttpUrl = url(httpProtocols).pipe(refusedWith("must be an http or https URL"))

/** A URL that may contain a password. */
export const serverUrl = (protocols: ReadonlyArray<string>, example: string) =>
  Schema.RedactedFromValue(url(protocols)).pipe(refusedWith(`must be a URL of the form ${example}`))

export const BrokerUrls = parsed(
  Schema.NonEmptyArray(Schema.RedactedFromValue(url(["amqp:", "amqps:"]))),
  "must be a URL of the form amqp://user:password@host:5672/vhost, or several, separated by commas; write a comma within a URL as %2C",
  (text) => Arr.map(Str.split(text, ","), Str.trim)
)

export const WebOrigin = parsed(
  url(httpProtocols),
  "must be only the scheme, host and port that browsers use, such as https://upstream-ui.example.com",
  (text) => {
    const { hash, origin, password, pathname, search, username } = URL.parse(text) ?? {}
    return pathname === "/" && `${username}${password}${search}${hash}` === "" ? origin : undefined
  }
)

/** A base URL as vendors publish it for their SDKs. */
export const UpstreamAddress = Schema.String.check(
  Schema.makeFilter((text: string) => {
    const refusal = UpstreamBase.refusedAddress(text)
    return refusal && `${refusal}; for example https://models.example.com:4000 or https://models.example.com/api/v1`
  })
)

/** The base URL of a studio, a backend that lists services. The URL may contain a path. */
export const StudioUrl = Schema.String.check(Schema.makeFilter(validateBaseUrl))

const splitList = (text: string): ReadonlyArray<string> => text.split(",").flatMap((item) => item.trim() || [])

/** Items are separated by commas. Blank items are ignored. */
const List = parsed(Schema.Array(Schema.String), "must be items, separated by commas", splitList)

export const Groups = List.pipe(
  Schema.decodeTo(AuthSettings.AuthSettings.fields.allowed_groups),
  refusedWith("must be at most 200 groups, separated by commas, each of at most 512 characters")
)

const maxGroups = 200

/** A group's name may contain `=`, as those of LDAP do; scopes contain none. */
export const GroupScopes = parsed(
  Schema.Array(
    Schema.Struct({
      group: Schema.String.check(Schema.isBetweenLength(1, 512)),
      scopes: Schema.Array(Scope).check(Schema.isMinLength(1))
    })
  ).check(Schema.isMaxLength(maxGroups)),
  `must be at most ${maxGroups} groups and their scopes, such as operators=usage:read,keys:create;admins=*`,
  (text) => {
    const groups = text.split(";").flatMap((item) => (item.trim() === "" ? [] : [groupOf(item)]))
    return groups.every(Predicate.isNotUndefined) ? groups : undefined
  }
)

const isScope = Schema.is(Scope)

const groupOf = (item: string) => {
  const [, group = "", list = ""] = /^(.+)=([^=]*)$/.exec(item) ?? []
  const scopes = splitList(list)
  return scopes.every(isScope) ? { group: group.trim(), scopes } : undefined
}

/** OAuth scopes (RFC 6749 §3.3), separated by spaces. */
export const OAuthScopes = parsed(
  Schema.Array(Schema.String.check(Schema.isPattern(/^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/))).check(
    Schema.isMaxLength(32)
  ),
  "must be at most 32 scopes, separated by spaces, such as profile groups",
  (text) => text.split(" ").filter((scope) => scope !== "" && scope !== "openid")
)

export const Algorithms = List.pipe(
  Schema.decodeTo(AuthSettings.AuthSettings.fields.accepted_algorithms, passthrough({ strict: false })),
  refusedWith(`must be one or more of ${AuthSettings.Algorithm.literals.join(", ")}, separated by commas`)
)

/** Origins of web pages, or `*` for all. */
export const PageOrigins = List.pipe(
  Schema.decodeTo(Schema.Array(Schema.Union([Schema.Literal("*"), WebOrigin])).check(Schema.isMaxLength(64))),
  refusedWith(
    "must be * for all web pages, or at most 64 origins, separated by commas, such as https://app.example.com"
  )
)

export const HostNames = parsed(
  Schema.Array(Schema.String.check(Schema.isPattern(/^[a-z0-9._-]{1,253}$/))).check(Schema.isMaxLength(64)),
  "must be at most 64 host names without ports, separated by commas, such as gateway.example.com",
  (text) => splitList(text.toLowerCase())
)

const paths = (refused: (path: string) => string | undefined) =>
  List.pipe(Schema.decode({ decode: SchemaGetter.transform(Arr.dedupe), encode: SchemaGetter.passthrough() })).check(
    Schema.makeFilter((found: ReadonlyArray<string>) => {
      if (found.length > 64 || found.some((path) => path.length > 512)) {
        return "must be at most 64 paths, separated by commas, each of at most 512 characters"
      }
      const index = found.findIndex((path) => refused(path) !== undefined)
      return index === -1 || `must be paths, separated by commas; path ${index + 1} ${refused(found[index]!)}`
    })
  )

export const UiPaths = paths(refusedUiPath)

/** The gateway sends its own credential to this upstream, so no pattern may allow every path. */
export const CompatPaths = paths((path) =>
  isPattern(path)
    ? undefined
    : "must be a path of letters, digits and - _ ~ . between single slashes, with at least one segment, and optionally /* at the end"
)

/** OpenTelemetry uses this format for headers and attributes. */
export const Pairs = parsed(
  Schema.Record(Schema.StringFromUriComponent, Schema.StringFromUriComponent),
  "must be at most 64 pairs name=value, separated by commas; percent-encode special characters within a value",
  (text) => {
    const pairs = splitList(text).map((item) => /^([^=\s]{1,256})\s*=\s*([^\r\n]{0,4096})$/.exec(item))
    return pairs.length <= 64 && pairs.every(Predicate.isNotNull)
      ? Object.fromEntries(pairs.map(([, name = "", value = ""]) => [name, value]))
      : undefined
  }
)

const levels: Readonly<Record<string, LogLevel.LogLevel>> = {
  trace: "Trace",
  debug: "Debug",
  info: "Info",
  warn: "Warn",
  warning: "Warn",
  error: "Error",
  off: "None"
}
const Level = Schema.Literals(LogLevel.values)

export const sameLevel = (level: LogLevel.LogLevel) => ({ other: level, gateway_api: level, gateway_proxy: level })

/** A level such as `info`, or levels by component: `gateway_api=info,gateway_proxy=debug`. */
export const LogLevels = parsed(
  Schema.Struct({ other: Level, gateway_api: Level, gateway_proxy: Level }),
  "must be trace, debug, info, warn, error or off, or levels by component such as gateway_api=info,gateway_proxy=debug",
  (text) => {
    let found = sameLevel("Info")
    for (const part of text.split(",")) {
      const [component = "", word] = part.trim().split("=", 2)
      const level = levels[(word ?? component).trim().toLowerCase()]
      if (level === undefined) return undefined
      if (word === undefined) found = sameLevel(level)
      else if (component === "gateway_api" || component === "gateway_proxy") found = { ...found, [component]: level }
      else return undefined
    }
    return found
  }
)
