import { Array as Arr, Option, Record, Redacted, Result, Schema, String as Str } from "effect"
import type { StudioTarget } from "../src/control/services/StudioConnection.ts"
import { trimBaseUrl, validateBaseUrl } from "../src/control/store/Validation.ts"
import type * as Retention from "../src/gateway/usage/Retention.ts"
import { isLoopback } from "../src/http/RequestHost.ts"
import * as AuthSettings from "../src/policy/AuthSettings.ts"
import { maxBodyBytes, maxTimeoutMs, type RouteLimits } from "../src/policy/routes/CanonicalRoute.ts"
import * as CompatPaths from "../src/policy/routes/CompatPaths.ts"
import { Ownership } from "../src/policy/routes/Ownership.ts"
import { isPattern } from "../src/policy/routes/Path.ts"
import type * as StartupUpstreams from "../src/policy/routes/StartupUpstreams.ts"
import * as UpstreamBase from "../src/policy/routes/UpstreamBase.ts"
import { refusedUiPath } from "../src/policy/routes/UpstreamPaths.ts"
import { minSumsDays } from "../src/policy/UsageSums.ts"
import * as FairShare from "../src/services/FairShare.ts"
import type { AddressPolicy } from "./http/AddressPolicy.ts"
import type { ConnectionLimits } from "./http/OpenConnections.ts"
import * as Sampler from "./telemetry/Sampler.ts"

export type Environment = Readonly<Record<string, string | undefined>>

export interface Address {
  readonly host: string
  readonly port: number
  readonly variable?: string
}

export type LogLevel = "Trace" | "Debug" | "Info" | "Warn" | "Error" | "None"

export interface Settings {
  readonly databaseUrl: Option.Option<Redacted.Redacted>
  readonly redisUrl: Option.Option<Redacted.Redacted>
  readonly redisKeyPrefix: string
  /** The nodes of a cluster, or a single server. */
  readonly rabbitmqUrls: Option.Option<Arr.NonEmptyReadonlyArray<Redacted.Redacted>>
  readonly upstreams: StartupUpstreams.UpstreamsByFamily
  /** Paths that the upstream's UI may load: exact paths, or `/prefix/*`. They are the upstream's own paths. */
  readonly upstreamUiPaths: ReadonlyArray<string>
  readonly directCompat: Option.Option<{
    readonly base: UpstreamBase.UpstreamBase
    readonly serviceKey: Redacted.Redacted
  }>
  readonly directCompatPaths: ReadonlyArray<string>
  readonly directCompatOwnership: Ownership
  /** The studio from which services are imported when no connection is stored. */
  readonly studio: Option.Option<StudioTarget>
  /** Origins that the environment names, and `GATEWAY_EGRESS_PRIVATE_ADDRESSES` for all other addresses. */
  readonly addressPolicy: AddressPolicy
  readonly proxyAddress: Address
  /** Origins of web pages whose scripts may call the proxy listener; `*` allows all. */
  readonly corsOrigins: ReadonlyArray<string>
  readonly controlAddress: Address
  /** Host names under which browsers may reach the parts of the control listener that need no token. */
  readonly controlHosts: ReadonlyArray<string>
  /** The listener that serves the upstream's UI to browsers, and its public origin. */
  readonly upstreamUi: Option.Option<{ readonly address: Address; readonly publicOrigin: Option.Option<string> }>
  /** The listener of statuses, dead letters and graphs. Without a token it must be a loopback address. */
  readonly statusAddress: Address
  readonly statusToken: Option.Option<Redacted.Redacted>
  /** The limit of open event streams; `perAddress` replaces the default share of one address. */
  readonly eventStreams: { readonly most: number; readonly perAddress: Option.Option<number> }
  /** `gateway_api`: the control listener; `gateway_proxy`: the proxy listener. */
  readonly logLevels: { readonly other: LogLevel; readonly gateway_api: LogLevel; readonly gateway_proxy: LogLevel }
  /** Logs one line for each request to the proxy listener. */
  readonly accessLog: boolean
  /** Lets workers store the messages and stack traces of exceptions. */
  readonly storeExceptionDetails: boolean
  readonly adminToken: Option.Option<Redacted.Redacted>
  readonly workerToken: Option.Option<Redacted.Redacted>
  readonly encryptionKey: Option.Option<Redacted.Redacted<Uint8Array>>
  /** Decrypts values that were sealed under the previous key; `secrets rotate` seals them again. */
  readonly previousEncryptionKey: Option.Option<Redacted.Redacted<Uint8Array>>
  readonly connectionLimits: ConnectionLimits
  /** Initial limits of the routes of a new installation. */
  readonly routeLimits: Partial<RouteLimits>
  /** Days for which rows are kept. Without a number, rows are kept forever. */
  readonly retention: Retention.RetentionDays
  readonly maxBufferedRequests: number
  readonly maxInflightBufferBytes: number
  readonly drainSeconds: number
  /** Seconds between readiness turning false and the listeners closing. */
  readonly drainDelaySeconds: number
  readonly otlp: Option.Option<OtlpSettings>
  /** The authentication of callers. Empty when no variable configures it. */
  readonly authSettings: Option.Option<AuthSettings.ConfiguredAuth>
  /** Variables that are set and have no effect, such as a token without an address. The banner warns about them. */
  readonly unreadVariables: ReadonlyArray<string>
}

/** The OpenTelemetry export, read from OpenTelemetry's standard variables. */
export interface OtlpSettings {
  readonly endpoint: string
  readonly headers: Redacted.Redacted<Readonly<Record<string, string>>>
  readonly serviceName: Option.Option<string>
  readonly attributes: Readonly<Record<string, string>>
  readonly sampler: Sampler.Sampler
}

/** One invalid variable and what it must be. The message never contains the value, which may be a secret. */
export interface Mistake {
  readonly variable: string
  readonly message: string
}

type Reader<A> = (value: string) => Result.Result<A, string>

/** The variables of an environment, and the mistakes found so far. Values are trimmed; a blank value counts as unset. */
class Variables {
  readonly mistakes: Array<Mistake> = []
  readonly #environment: Environment

  constructor(environment: Environment) {
    this.#environment = environment
  }

  isSet(variable: string): boolean {
    return this.#valueOf(variable) !== ""
  }

  optional<A>(variable: string, reader: Reader<A>): Option.Option<A> {
    const value = this.#valueOf(variable)
    if (value === "") return Option.none()
    const result = reader(value)
    if (Result.isSuccess(result)) return Option.some(result.success)
    this.mistakes.push({ variable, message: result.failure })
    return Option.none()
  }

  withDefault<A>(variable: string, reader: Reader<A>, fallback: A): A {
    return Option.getOrElse(this.optional(variable, reader), () => fallback)
  }

  address(variable: string, port: number): Address {
    return { ...this.withDefault(variable, address, { host: "127.0.0.1", port }), variable }
  }

  /** Adds a mistake, unless the variable has one already: a rejected value is not reported as missing too. */
  reject(variable: string, message: string): void {
    if (!this.mistakes.some((mistake) => mistake.variable === variable)) this.mistakes.push({ variable, message })
  }

  #valueOf(variable: string): string {
    return this.#environment[variable]?.trim() ?? ""
  }
}

const readDirectCompat = (variables: Variables): Settings["directCompat"] => {
  const base = variables.optional("DIRECT_COMPAT_BASE_URL", upstreamBase)
  const serviceKey = variables.optional("DIRECT_COMPAT_SERVICE_KEY", credential)
  if (Option.isSome(base) !== Option.isSome(serviceKey)) {
    variables.reject(
      Option.isSome(base) ? "DIRECT_COMPAT_SERVICE_KEY" : "DIRECT_COMPAT_BASE_URL",
      "is required: set both DIRECT_COMPAT_BASE_URL and DIRECT_COMPAT_SERVICE_KEY, or neither"
    )
  }
  return Option.all({ base, serviceKey })
}

const readAuthSettings = (variables: Variables): AuthSettings.ConfiguredAuth => {
  const text = (variable: string) => Option.getOrNull(variables.optional(variable, identityText))
  const { accepted_algorithms, svc_key_header } = AuthSettings.disabledAuth
  const settings: AuthSettings.AuthSettings = {
    svc_key_header: variables.withDefault("IDENTITY_SVC_KEY_HEADER", Result.succeed, svc_key_header),
    identity_enabled: variables.withDefault("IDENTITY_AUTH_ENABLED", flag, false),
    tenant_id: text("IDENTITY_TENANT_ID"),
    audience: text("IDENTITY_AUDIENCE"),
    issuer: text("IDENTITY_ISSUER"),
    oidc_discovery_url: Option.getOrNull(variables.optional("IDENTITY_OIDC_DISCOVERY_URL", Result.succeed)),
    required_scope: text("IDENTITY_REQUIRED_SCOPE"),
    required_role: text("IDENTITY_REQUIRED_ROLE"),
    allowed_groups: variables.withDefault("IDENTITY_ALLOWED_GROUPS", groups, []),
    accepted_algorithms: variables.withDefault("IDENTITY_ACCEPTED_ALGORITHMS", algorithms, accepted_algorithms),
    jwks_cache_ttl_seconds: variables.withDefault("IDENTITY_JWKS_CACHE_TTL_SECONDS", between(1, 86_400), 300),
    clock_skew_seconds: variables.withDefault("IDENTITY_CLOCK_SKEW_SECONDS", between(0, 600), 60),
    trusted_gateway_header_enabled: variables.withDefault("TRUSTED_GATEWAY_HEADER_ENABLED", flag, false)
  }
  const secret = variables.optional("TRUSTED_GATEWAY_HEADER_SECRET", credential)
  for (const { field, message } of AuthSettings.mistakes(settings, Option.isSome(secret))) {
    variables.reject(authVariables[field], message)
  }
  return { settings, secret }
}

const readStatusListener = (variables: Variables): Pick<Settings, "statusAddress" | "statusToken"> => {
  const statusAddress = variables.address("SVC_STATUS_BIND_ADDR", 8082)
  const statusToken = variables.optional("SVC_STATUS_TOKEN", credential)
  if (!isLoopback(statusAddress.host) && Option.isNone(statusToken)) {
    variables.reject(
      "SVC_STATUS_TOKEN",
      "is required, because SVC_STATUS_BIND_ADDR is not a loopback address, so other machines can reach it"
    )
  }
  return { statusAddress, statusToken }
}

const readUpstreamUi = (variables: Variables): Settings["upstreamUi"] => {
  const variable = "GATEWAY_UPSTREAM_UI_BIND_ADDR"
  const boundTo = variables.optional(variable, address)
  const publicOrigin = variables.optional("GATEWAY_UPSTREAM_UI_ORIGIN", webOrigin)
  if (Option.isSome(boundTo) && isWildcardAddress(boundTo.value.host) && Option.isNone(publicOrigin)) {
    variables.reject(
      "GATEWAY_UPSTREAM_UI_ORIGIN",
      `is required, because ${variable} listens on every address, and links for browsers must name one`
    )
  }
  return Option.map(boundTo, (address) => ({ address: { ...address, variable }, publicOrigin }))
}

const readUpstreams = (variables: Variables): StartupUpstreams.UpstreamsByFamily => {
  const upstream = (
    name: Exclude<StartupUpstreams.StartupUpstream["name"], "simulator">,
    keyName: string,
    example?: string
  ): Option.Option<StartupUpstreams.StartupUpstream> => {
    const base = variables.optional(name, upstreamBase)
    const serviceKey = variables.optional(keyName, credential)
    if (Option.isSome(serviceKey) && Option.isNone(base) && example !== undefined) {
      variables.reject(name, `is required, because ${keyName} is set: for example ${example}`)
    }
    return Option.map(base, (base) => ({ name, base, serviceKey }))
  }
  return {
    both: upstream("UPSTREAM_BASE_URL", "UPSTREAM_SERVICE_KEY"),
    a: upstream("UPSTREAM_OPENAI_BASE_URL", "UPSTREAM_OPENAI_SERVICE_KEY", "https://api.openai.com/v1"),
    b: upstream("UPSTREAM_ANTHROPIC_BASE_URL", "UPSTREAM_ANTHROPIC_SERVICE_KEY", "https://api.anthropic.com")
  }
}

const readOtlp = (variables: Variables): Settings["otlp"] =>
  Option.map(variables.optional("OTEL_EXPORTER_OTLP_ENDPOINT", httpUrl), (endpoint) => ({
    endpoint,
    headers: Redacted.make(variables.withDefault("OTEL_EXPORTER_OTLP_HEADERS", keyValuePairs, {})),
    serviceName: variables.optional("OTEL_SERVICE_NAME", Result.succeed),
    attributes: variables.withDefault("OTEL_RESOURCE_ATTRIBUTES", keyValuePairs, {}),
    sampler: Sampler.make(
      variables.withDefault("OTEL_TRACES_SAMPLER", sampler, "parentbased_always_on"),
      variables.withDefault("OTEL_TRACES_SAMPLER_ARG", ratio, 1)
    )
  }))

/** Reads all variables and returns either the settings or every mistake. */
export const read = (environment: Environment): Result.Result<Settings, ReadonlyArray<Mistake>> => {
  const variables = new Variables(environment)
  const maxConnections = variables.withDefault("GATEWAY_MAX_CONNECTIONS", positive, 16_384)
  const directCompat = readDirectCompat(variables)
  const auth = readAuthSettings(variables)
  const statusListener = readStatusListener(variables)
  const upstreamUi = readUpstreamUi(variables)
  const upstreams = readUpstreams(variables)
  const studioBaseUrl = variables.optional("SVC_STUDIO_BASE_URL", baseUrl)
  const studioToken = variables.optional("SVC_STUDIO_TOKEN", credential)
  const discoveryUrl = Option.filter(Option.fromNullOr(auth.settings.oidc_discovery_url), (url) => URL.canParse(url))

  const isSet = (variable: string) => variables.isSet(variable)

  const settings: Settings = {
    databaseUrl: variables.optional(
      "DATABASE_URL",
      url(["postgres:", "postgresql:"], "postgres://user:password@host:5432/database")
    ),
    redisUrl: variables.optional("REDIS_URL", url(["redis:", "rediss:"], "redis://user:password@host:6379/0")),
    redisKeyPrefix: variables.withDefault("REDIS_KEY_PREFIX", keyPrefix, "{svc}:"),
    rabbitmqUrls: variables.optional("RABBITMQ_URL", brokerUrls),
    upstreams,
    upstreamUiPaths: variables.withDefault("UPSTREAM_UI_PATHS", paths(refusedUiPath), []),
    directCompat,
    directCompatPaths: variables.withDefault(
      "DIRECT_COMPAT_ALLOWED_PATHS",
      paths(refusedCompatPath),
      CompatPaths.defaultPaths
    ),
    directCompatOwnership: variables.withDefault("DIRECT_COMPAT_OWNERSHIP", ownership, "project"),
    studio: Option.map(studioBaseUrl, (base_url) => ({ base_url, token: studioToken })),
    addressPolicy: {
      privateAddresses: variables.withDefault("GATEWAY_EGRESS_PRIVATE_ADDRESSES", privateAddresses, "allow"),
      trustedOrigins: [
        ...Object.values(upstreams)
          .flatMap(Option.toArray)
          .map(({ base }) => base.origin),
        ...Option.toArray(directCompat).map(({ base }) => base.origin),
        ...[studioBaseUrl, discoveryUrl].flatMap(Option.toArray).map((url) => new URL(url).origin)
      ]
    },
    proxyAddress: variables.address("GATEWAY_BIND_ADDR", 8080),
    corsOrigins: variables.withDefault("GATEWAY_CORS_ORIGINS", pageOrigins, []),
    controlAddress: variables.address("GATEWAY_CONTROL_BIND_ADDR", 8081),
    controlHosts: variables.withDefault("GATEWAY_CONTROL_HOSTS", hostNames, []),
    upstreamUi,
    ...statusListener,
    eventStreams: {
      most: variables.withDefault("SVC_STATUS_MAX_EVENT_STREAMS", between(1, 1_000_000), 10_000),
      perAddress: variables.optional("SVC_STATUS_MAX_EVENT_STREAMS_PER_ADDRESS", between(1, 1_000_000))
    },
    logLevels: variables.withDefault("LOG_LEVEL", logLevels, sameLevel("Info")),
    accessLog: variables.withDefault("GATEWAY_ACCESS_LOG", flag, true),
    storeExceptionDetails: variables.withDefault("SVC_STORE_EXCEPTION_DETAILS", flag, true),
    // The token's format is checked at startup: it matters only while no operator token is active.
    adminToken: variables.optional("GATEWAY_ADMIN_TOKEN", (value) => Result.succeed(Redacted.make(value))),
    workerToken: variables.optional("SVC_WORKER_TOKEN", credential),
    encryptionKey: variables.optional("GATEWAY_ENCRYPTION_KEY", encryptionKey),
    previousEncryptionKey: variables.optional("GATEWAY_PREVIOUS_ENCRYPTION_KEY", encryptionKey),
    connectionLimits: {
      total: maxConnections,
      perAddress: variables.withDefault(
        "GATEWAY_MAX_CONNECTIONS_PER_ADDRESS",
        positive,
        FairShare.maximum(maxConnections)
      )
    },
    routeLimits: Record.getSomes({
      timeoutMs: variables.optional("GATEWAY_DEFAULT_TIMEOUT_MS", between(1, maxTimeoutMs)),
      maxRequestBodyBytes: variables.optional("GATEWAY_DEFAULT_MAX_REQUEST_BODY_BYTES", between(1, maxBodyBytes)),
      maxResponseBodyBytes: variables.optional("GATEWAY_DEFAULT_MAX_RESPONSE_BODY_BYTES", between(1, maxBodyBytes))
    }),
    retention: Record.getSomes({
      usage: variables.optional("SVC_RETENTION_USAGE_DAYS", between(1, maxRetentionDays)),
      usageSums: variables.optional("SVC_RETENTION_USAGE_SUMS_DAYS", between(minSumsDays, maxRetentionDays)),
      guardrailExecutions: variables.optional("SVC_RETENTION_GUARDRAIL_EXECUTIONS_DAYS", between(1, maxRetentionDays))
    }),
    maxBufferedRequests: variables.withDefault("GATEWAY_MAX_BUFFERED_REQUESTS", positive, 4096),
    maxInflightBufferBytes: variables.withDefault("GATEWAY_MAX_INFLIGHT_BUFFER_BYTES", positive, 536_870_912),
    drainSeconds: variables.withDefault("GATEWAY_DRAIN_SECONDS", positive, 30),
    drainDelaySeconds: variables.withDefault("GATEWAY_DRAIN_DELAY_SECONDS", nonNegative, 0),
    otlp: readOtlp(variables),
    authSettings: Object.values(authVariables).some(isSet) ? Option.some(auth) : Option.none(),
    unreadVariables: [
      ...ignoredVariables.filter(isSet),
      ...(isSet("UPSTREAM_SERVICE_KEY") && Option.isNone(upstreams.both) ? ["UPSTREAM_SERVICE_KEY"] : []),
      ...(Option.isSome(studioToken) && Option.isNone(studioBaseUrl) ? ["SVC_STUDIO_TOKEN"] : []),
      ...(isSet("GATEWAY_UPSTREAM_UI_ORIGIN") && Option.isNone(upstreamUi) ? ["GATEWAY_UPSTREAM_UI_ORIGIN"] : [])
    ]
  }
  return variables.mistakes.length === 0 ? Result.succeed(settings) : Result.fail(variables.mistakes)
}

export const describeMistakes = (mistakes: ReadonlyArray<Mistake>): string =>
  [
    "invalid_configuration: these environment variables are invalid.",
    ...mistakes.map(({ message, variable }) => `  ${variable} ${message}.`)
  ].join("\n")

/** One hundred years. */
const maxRetentionDays = 36_500

/** Placeholders live in the memory of their request, so they need no lifetime and no encryption key. */
const ignoredVariables = ["GUARDRAIL_PII_MAPPING_TTL_SECONDS", "GUARDRAIL_MAPPING_ENCRYPTION_KEY"]

const authVariables: Readonly<Record<AuthSettings.SettingsMistake["field"], string>> = {
  svc_key_header: "IDENTITY_SVC_KEY_HEADER",
  identity_enabled: "IDENTITY_AUTH_ENABLED",
  tenant_id: "IDENTITY_TENANT_ID",
  audience: "IDENTITY_AUDIENCE",
  issuer: "IDENTITY_ISSUER",
  oidc_discovery_url: "IDENTITY_OIDC_DISCOVERY_URL",
  required_scope: "IDENTITY_REQUIRED_SCOPE",
  required_role: "IDENTITY_REQUIRED_ROLE",
  allowed_groups: "IDENTITY_ALLOWED_GROUPS",
  accepted_algorithms: "IDENTITY_ACCEPTED_ALGORITHMS",
  jwks_cache_ttl_seconds: "IDENTITY_JWKS_CACHE_TTL_SECONDS",
  clock_skew_seconds: "IDENTITY_CLOCK_SKEW_SECONDS",
  trusted_gateway_header_enabled: "TRUSTED_GATEWAY_HEADER_ENABLED",
  trusted_gateway_header_secret: "TRUSTED_GATEWAY_HEADER_SECRET"
}

const refine =
  <A>(parse: (value: string) => A | undefined, message: string): Reader<A> =>
  (value) => {
    const parsed = parse(value)
    return parsed === undefined ? Result.fail(message) : Result.succeed(parsed)
  }

const parseUrl = (value: string): URL | undefined => (URL.canParse(value) ? new URL(value) : undefined)

const url = (protocols: ReadonlyArray<string>, example: string): Reader<Redacted.Redacted> =>
  refine((value) => {
    const parsed = parseUrl(value)
    return parsed !== undefined && protocols.includes(parsed.protocol) && parsed.hostname !== ""
      ? Redacted.make(value)
      : undefined
  }, `must be a URL of the form ${example}`)

const brokerUrl = url(
  ["amqp:", "amqps:"],
  "amqp://user:password@host:5672/vhost, or several, separated by commas; write a comma within a URL as %2C"
)
const brokerUrls: Reader<Arr.NonEmptyReadonlyArray<Redacted.Redacted>> = (value) =>
  Result.all(Arr.map(Str.split(value, ","), (part) => brokerUrl(part.trim())))

const httpUrl: Reader<string> = refine((value) => {
  const parsed = parseUrl(value)
  return parsed !== undefined && /^https?:$/.test(parsed.protocol) ? value : undefined
}, "must be an http or https URL")

/** OpenTelemetry's format; special characters are percent-encoded. */
const keyValuePairs: Reader<Readonly<Record<string, string>>> = refine((value) => {
  const found: Array<readonly [string, string]> = []
  for (const part of splitList(value)) {
    const [, name, text] = /^([^=\s]{1,256})\s*=\s*([^\r\n]{0,4096})$/.exec(part) ?? []
    if (name === undefined || text === undefined || found.length >= maxPairs) return undefined
    try {
      found.push([decodeURIComponent(name), decodeURIComponent(text)])
    } catch {
      return undefined
    }
  }
  return Object.fromEntries(found)
}, "must be at most 64 pairs name=value, separated by commas; percent-encode special characters within a value")
const maxPairs = 64

const sampler = refine(
  (value) => Sampler.samplerNames.find((name) => name === value),
  `must be one of ${Sampler.samplerNames.join(", ")}`
)

const ratio: Reader<number> = refine((value) => {
  const number = Number(value)
  return /^[0-9.]+$/.test(value) && number >= 0 && number <= 1 ? number : undefined
}, "must be a number from 0 to 1: the fraction of traces to export")

const parseBareOrigin = (value: string): string | undefined => {
  const parsed = parseUrl(value)
  if (parsed === undefined || !/^https?:$/.test(parsed.protocol) || parsed.hostname === "") return undefined
  const bare =
    parsed.pathname === "/" && parsed.search === "" && parsed.hash === "" && parsed.username + parsed.password === ""
  return bare ? parsed.origin : undefined
}

const pageOrigins: Reader<ReadonlyArray<string>> = (value) => {
  const found = splitList(value).flatMap((one) => (one === "*" ? one : (parseBareOrigin(one) ?? [])))
  return found.length === splitList(value).length && found.length <= maxHostNames
    ? Result.succeed(found)
    : Result.fail(
        `must be * for all web pages, or at most ${maxHostNames} origins, separated by commas, such as https://app.example.com`
      )
}

const webOrigin: Reader<string> = refine(
  parseBareOrigin,
  "must be only the scheme, host and port that browsers use, such as https://upstream-ui.example.com"
)

/** A base URL as vendors publish it for their SDKs. */
const upstreamBase: Reader<UpstreamBase.UpstreamBase> = (value) => {
  const refusal = UpstreamBase.refusedAddress(value)
  return refusal === undefined
    ? Result.succeed(UpstreamBase.of(value))
    : Result.fail(`${refusal}; for example https://models.example.com:4000 or https://models.example.com/api/v1`)
}

/** The base URL may contain a path of the studio's own. */
const baseUrl: Reader<string> = (value) => {
  const refusal = validateBaseUrl(value)
  return refusal === undefined ? Result.succeed(trimBaseUrl(value)) : Result.fail(refusal)
}

const ownership: Reader<Ownership> = refine(
  (value) => Ownership.literals.find((one) => one === value),
  `must be one of ${Ownership.literals.join(", ")}: who may use objects that a key creates at the direct compatible upstream`
)

const privateAddresses: Reader<AddressPolicy["privateAddresses"]> = refine(
  (value) => (value === "allow" || value === "refuse" ? value : undefined),
  "must be allow or refuse: whether the gateway calls private and loopback addresses that the environment does not name"
)

const isWildcardAddress = (host: string): boolean => host === "0.0.0.0" || /^[0:]+$/.test(host)

const address: Reader<Address> = refine((value) => {
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(value) ?? []
  const port = Number(digits)
  const host = bracketed ?? plain
  return host !== undefined && port <= 65_535 ? { host, port } : undefined
}, "must be host:port, such as 0.0.0.0:8080")

/** Characters that a header value may contain. */
const credential: Reader<Redacted.Redacted> = refine(
  (value) => (/^[\x21-\x7e]{1,4096}$/.test(value) ? Redacted.make(value) : undefined),
  "must be 1 to 4096 visible ASCII characters"
)

const encryptionKey: Reader<Redacted.Redacted<Uint8Array>> = refine((value) => {
  const bytes = Buffer.from(value, "base64")
  return bytes.length === 32 && /^[A-Za-z0-9+/]{43}=$/.test(value) ? Redacted.make<Uint8Array>(bytes) : undefined
}, "must be 32 bytes in base64, as `openssl rand -base64 32` prints them")

const parseInteger = (value: string): number | undefined => {
  const number = Number(value)
  return /^\d+$/.test(value) && Number.isSafeInteger(number) ? number : undefined
}
const nonNegative: Reader<number> = refine(parseInteger, "must be 0 or a whole number above 0")
const positive: Reader<number> = refine((value) => {
  const number = parseInteger(value)
  return number === 0 ? undefined : number
}, "must be a whole number above 0")

const between = (minimum: number, maximum: number): Reader<number> =>
  refine((value) => {
    const number = parseInteger(value)
    return number !== undefined && number >= minimum && number <= maximum ? number : undefined
  }, `must be a whole number from ${minimum} to ${maximum}`)

const identityText: Reader<string> = refine(
  (value) => (value.length <= 512 ? value : undefined),
  "must have at most 512 characters"
)

const splitList = (value: string): ReadonlyArray<string> => value.split(",").flatMap((item) => item.trim() || [])

const maxHostNames = 64
const hostNames: Reader<ReadonlyArray<string>> = refine((value) => {
  const found = splitList(value.toLowerCase())
  const isName = (name: string) => /^[a-z0-9._-]{1,253}$/.test(name)
  return found.length <= maxHostNames && found.every(isName) ? found : undefined
}, `must be at most ${maxHostNames} host names without ports, separated by commas, such as gateway.example.com`)

const groups: Reader<ReadonlyArray<string>> = refine((value) => {
  const found = splitList(value)
  return found.length <= 200 && found.every((group) => group.length <= 512) ? found : undefined
}, "must be at most 200 groups, separated by commas, each of at most 512 characters")

const maxPaths = 64
const paths =
  (refused: (path: string) => string | undefined): Reader<ReadonlyArray<string>> =>
  (value) => {
    const found = [...new Set(splitList(value))]
    if (found.length > maxPaths || found.some((path) => path.length > 512)) {
      return Result.fail(`must be at most ${maxPaths} paths, separated by commas, each of at most 512 characters`)
    }
    for (const [index, path] of found.entries()) {
      const refusal = refused(path)
      if (refusal !== undefined) return Result.fail(`must be paths, separated by commas; path ${index + 1} ${refusal}`)
    }
    return Result.succeed(found)
  }

/** The gateway sends its own credential to this upstream, so no pattern may allow every path. */
const refusedCompatPath = (path: string): string | undefined =>
  isPattern(path)
    ? undefined
    : "must be a path of letters, digits and - _ ~ . between single slashes, with at least one segment, and optionally /* at the end"

const areAlgorithms = Schema.is(AuthSettings.AuthSettings.fields.accepted_algorithms)
const algorithms: Reader<ReadonlyArray<AuthSettings.Algorithm>> = refine(
  (value) => {
    const found = splitList(value)
    return areAlgorithms(found) ? found : undefined
  },
  `must be one or more of ${AuthSettings.Algorithm.literals.join(", ")}, separated by commas`
)

const keyPrefix: Reader<string> = refine(
  (value) => (/^[\x21-\x7e]{1,64}$/.test(value) ? value : undefined),
  "must be 1 to 64 visible ASCII characters"
)

const flags: Readonly<Record<string, boolean>> = {
  true: true,
  "1": true,
  yes: true,
  false: false,
  "0": false,
  no: false
}
const flag: Reader<boolean> = refine((value) => flags[value.toLowerCase()], "must be true, 1, yes, false, 0 or no")

const levels: Readonly<Record<string, LogLevel>> = {
  trace: "Trace",
  debug: "Debug",
  info: "Info",
  warn: "Warn",
  warning: "Warn",
  error: "Error",
  off: "None"
}

const sameLevel = (level: LogLevel): Settings["logLevels"] => ({
  other: level,
  gateway_api: level,
  gateway_proxy: level
})

/** One level, such as `info`, or levels by component: `gateway_api=info,gateway_proxy=debug`. */
const logLevels: Reader<Settings["logLevels"]> = refine((value) => {
  let found = sameLevel("Info")
  for (const part of value.split(",")) {
    const [component = "", word] = part.trim().split("=", 2)
    const level = levels[(word ?? component).trim().toLowerCase()]
    if (level === undefined) return undefined
    if (word === undefined) found = sameLevel(level)
    else if (component === "gateway_api" || component === "gateway_proxy") found = { ...found, [component]: level }
    else return undefined
  }
  return found
}, "must be trace, debug, info, warn, error or off, or levels by component such as gateway_api=info,gateway_proxy=debug")
