import { Option, Record, Redacted, Result, Schema } from "effect"
import { trimBaseUrl } from "../src/control/store/Validation.ts"
import { isLoopback } from "../src/http/RequestHost.ts"
import * as AuthSettings from "../src/policy/AuthSettings.ts"
import { maxTimeoutMs } from "../src/policy/routes/CanonicalRoute.ts"
import * as CompatPaths from "../src/policy/routes/CompatPaths.ts"
import type * as StartupUpstreams from "../src/policy/routes/StartupUpstreams.ts"
import * as UpstreamBase from "../src/policy/routes/UpstreamBase.ts"
import { genAiVersionOf } from "../src/process/SemanticConventions.ts"
import * as FairShare from "../src/services/FairShare.ts"
import { minSumsDays } from "../src/state/UsageSums.ts"
import { readOidcClient } from "./environment/SignInVariables.ts"
import * as UnreadVariables from "./environment/UnreadVariables.ts"
import * as Kinds from "./environment/VariableKinds.ts"
import { type Address, type Environment, type Mistake, Variables } from "./environment/Variables.ts"
import * as Sampler from "./telemetry/Sampler.ts"
import { version } from "./telemetry/Version.ts"

const readUpstreams = (variables: Variables): StartupUpstreams.UpstreamsByFamily => {
  const upstream = (
    name: Exclude<StartupUpstreams.StartupUpstream["name"], "simulator">,
    keyName: string,
    example?: string
  ): Option.Option<StartupUpstreams.StartupUpstream> => {
    const base = variables.optional(name, Kinds.UpstreamAddress)
    const serviceKey = variables.optional(keyName, Kinds.Credential)
    if (Option.isSome(serviceKey) && Option.isNone(base) && example !== undefined) {
      variables.reject(name, `is required, because ${keyName} is set: for example ${example}`)
    }
    return Option.map(base, (base) => ({ name, base: UpstreamBase.of(base), serviceKey }))
  }
  return {
    both: upstream("UPSTREAM_BASE_URL", "UPSTREAM_SERVICE_KEY"),
    a: upstream("UPSTREAM_OPENAI_BASE_URL", "UPSTREAM_OPENAI_SERVICE_KEY", "https://api.openai.com/v1"),
    b: upstream("UPSTREAM_ANTHROPIC_BASE_URL", "UPSTREAM_ANTHROPIC_SERVICE_KEY", "https://api.anthropic.com")
  }
}

const readDirectCompat = (variables: Variables) => {
  const address = variables.optional("DIRECT_COMPAT_BASE_URL", Kinds.UpstreamAddress)
  const serviceKey = variables.optional("DIRECT_COMPAT_SERVICE_KEY", Kinds.Credential)
  if (Option.isSome(address) !== Option.isSome(serviceKey)) {
    variables.reject(
      Option.isSome(address) ? "DIRECT_COMPAT_SERVICE_KEY" : "DIRECT_COMPAT_BASE_URL",
      "is required: set both DIRECT_COMPAT_BASE_URL and DIRECT_COMPAT_SERVICE_KEY, or neither"
    )
  }
  return Option.all({ base: Option.map(address, UpstreamBase.of), serviceKey })
}

const readUpstreamUi = (variables: Variables) => {
  const variable = "GATEWAY_UPSTREAM_UI_BIND_ADDR"
  const boundTo = variables.optional(variable, Kinds.Address)
  const publicOrigin = variables.optional("GATEWAY_UPSTREAM_UI_ORIGIN", Kinds.WebOrigin)
  if (Option.exists(boundTo, isWildcardAddress) && Option.isNone(publicOrigin)) {
    variables.reject(
      "GATEWAY_UPSTREAM_UI_ORIGIN",
      `is required, because ${variable} listens on every address, so links for browsers need an explicit origin`
    )
  }
  return Option.map(boundTo, (address) => ({ address: { ...address, variable }, publicOrigin }))
}

const portalVariable = "SVC_PORTAL_BIND_ADDR"

const isWildcardAddress = ({ host }: Address): boolean => host === "0.0.0.0" || /^[0:]+$/.test(host)

const readStatusListener = (variables: Variables) => {
  const statusAddress = variables.address("SVC_STATUS_BIND_ADDR", 8082)
  const statusToken = variables.optional("SVC_STATUS_TOKEN", Kinds.Credential)
  if (!isLoopback(statusAddress.host) && Option.isNone(statusToken)) {
    variables.reject(
      "SVC_STATUS_TOKEN",
      "is required, because SVC_STATUS_BIND_ADDR is not a loopback address, so other machines can reach it"
    )
  }
  return { statusAddress, statusToken }
}

const readAuth = (variables: Variables): Option.Option<AuthSettings.ConfiguredAuth> => {
  const found: Readonly<Record<keyof AuthSettings.AuthSettings, Option.Option<unknown>>> = {
    svc_key_header: variables.optional("IDENTITY_SVC_KEY_HEADER", Schema.String),
    identity_enabled: variables.optional("IDENTITY_AUTH_ENABLED", Kinds.Flag),
    tenant_id: variables.optional("IDENTITY_TENANT_ID", Kinds.IdentityText),
    audience: variables.optional("IDENTITY_AUDIENCE", Kinds.IdentityText),
    issuer: variables.optional("IDENTITY_ISSUER", Kinds.IdentityText),
    oidc_discovery_url: variables.optional("IDENTITY_OIDC_DISCOVERY_URL", Schema.String),
    required_scope: variables.optional("IDENTITY_REQUIRED_SCOPE", Kinds.IdentityText),
    required_role: variables.optional("IDENTITY_REQUIRED_ROLE", Kinds.IdentityText),
    allowed_groups: variables.optional("IDENTITY_ALLOWED_GROUPS", Kinds.Groups),
    accepted_algorithms: variables.optional("IDENTITY_ACCEPTED_ALGORITHMS", Kinds.Algorithms),
    jwks_cache_ttl_seconds: variables.optional("IDENTITY_JWKS_CACHE_TTL_SECONDS", Kinds.wholeNumber(1, 86_400)),
    clock_skew_seconds: variables.optional("IDENTITY_CLOCK_SKEW_SECONDS", Kinds.wholeNumber(0, 600)),
    trusted_gateway_header_enabled: variables.optional("TRUSTED_GATEWAY_HEADER_ENABLED", Kinds.Flag)
  }
  const secret = variables.optional("TRUSTED_GATEWAY_HEADER_SECRET", Kinds.Credential)
  const settings = completeAuth({ ...AuthSettings.disabledAuth, ...Record.getSomes(found) })
  for (const { field, message } of AuthSettings.mistakes(settings, Option.isSome(secret))) {
    variables.reject(authVariableOf(field), message)
  }
  const isConfigured = [secret, ...Object.values(found)].some(Option.isSome)
  return isConfigured ? Option.some({ settings, secret }) : Option.none()
}

const completeAuth = Schema.decodeUnknownSync(AuthSettings.AuthSettings)

const authVariableOf = (field: AuthSettings.SettingsMistake["field"]): string =>
  field === "trusted_gateway_header_secret" ? field.toUpperCase() : `IDENTITY_${field.toUpperCase()}`

/** Returns `none` without an endpoint. All other OpenTelemetry variables are then ignored. */
const readOtlp = (variables: Variables) =>
  Option.map(variables.optional("OTEL_EXPORTER_OTLP_ENDPOINT", Kinds.HttpUrl), (endpoint) => ({
    endpoint,
    headers: Redacted.make(variables.withDefault("OTEL_EXPORTER_OTLP_HEADERS", Kinds.Pairs, {})),
    serviceName: variables.optional("OTEL_SERVICE_NAME", Schema.String),
    attributes: variables.withDefault("OTEL_RESOURCE_ATTRIBUTES", Kinds.Pairs, {}),
    sampler: Sampler.make(
      variables.withDefault("OTEL_TRACES_SAMPLER", Kinds.oneOf(Sampler.samplerNames), "parentbased_always_on"),
      variables.withDefault("OTEL_TRACES_SAMPLER_ARG", Kinds.Ratio, 1)
    ),
    genAiVersion: genAiVersionOf(variables.withDefault("OTEL_SEMCONV_STABILITY_OPT_IN", Schema.String, ""))
  }))

export type OtlpSettings = Option.Option.Value<ReturnType<typeof readOtlp>>

export type Settings = ReturnType<typeof readSettings>

const readSettings = (variables: Variables) => {
  const upstreams = readUpstreams(variables)
  const directCompat = readDirectCompat(variables)
  const upstreamUi = readUpstreamUi(variables)
  const portal = Option.map(variables.optional(portalVariable, Kinds.Address), (address) => ({
    ...address,
    variable: portalVariable
  }))
  const authSettings = readAuth(variables)
  const controlOrigin = variables.optional("GATEWAY_CONTROL_ORIGIN", Kinds.WebOrigin)
  const oidcClient = readOidcClient(variables, controlOrigin)
  const studioBaseUrl = variables.optional("SVC_STUDIO_BASE_URL", Kinds.StudioUrl)
  const studioToken = variables.optional("SVC_STUDIO_TOKEN", Kinds.Credential)
  const maxConnections = variables.withDefault("GATEWAY_MAX_CONNECTIONS", Kinds.wholeNumber(1), 16_384)
  const otlp = readOtlp(variables)
  const bases: ReadonlyArray<Option.Option<{ readonly base: UpstreamBase.UpstreamBase }>> = [
    ...Object.values(upstreams),
    directCompat
  ]
  const discoveryUrl = Option.flatMapNullishOr(authSettings, ({ settings }) => settings.oidc_discovery_url)
  return {
    databaseUrl: variables.optional(
      "DATABASE_URL",
      Kinds.serverUrl(["postgres:", "postgresql:"], "postgres://user:password@host:5432/database")
    ),
    redisUrl: variables.optional(
      "REDIS_URL",
      Kinds.serverUrl(["redis:", "rediss:"], "redis://user:password@host:6379/0")
    ),
    redisKeyPrefix: variables.withDefault("REDIS_KEY_PREFIX", Kinds.KeyPrefix, "{svc}:"),
    /** One server, or all nodes of a cluster. */
    rabbitmqUrls: variables.optional("RABBITMQ_URL", Kinds.BrokerUrls),
    /** The directory in which variants inside the process keep their data. Without it, their data is lost at exit. */
    dataDirectory: variables.optional("SVC_DATA_DIR", Schema.String),
    upstreams,
    /** Upstream paths that the upstream's web interface may load. A path is exact or ends in `/*`. */
    upstreamUiPaths: variables.withDefault("UPSTREAM_UI_PATHS", Kinds.UiPaths, []),
    directCompat,
    directCompatPaths: variables.withDefault(
      "DIRECT_COMPAT_ALLOWED_PATHS",
      Kinds.CompatPaths,
      CompatPaths.defaultPaths
    ),
    directCompatOwnership: variables.withDefault("DIRECT_COMPAT_OWNERSHIP", Kinds.CompatOwnership, "project"),
    /** A studio is a backend that lists services. This one is used if the database contains none. */
    studio: Option.map(studioBaseUrl, (url) => ({ base_url: trimBaseUrl(url), token: studioToken })),
    /** `GATEWAY_EGRESS_PRIVATE_ADDRESSES` applies only to origins that no environment variable configures. */
    addressPolicy: {
      privateAddresses: variables.withDefault("GATEWAY_EGRESS_PRIVATE_ADDRESSES", Kinds.PrivateAddresses, "allow"),
      trustedOrigins: [
        ...bases.flatMap(Option.toArray).map(({ base }) => base.origin),
        ...[studioBaseUrl, discoveryUrl].flatMap(Option.toArray).flatMap((url) => URL.parse(url)?.origin ?? [])
      ]
    },
    proxyAddress: variables.address("GATEWAY_BIND_ADDR", 8080),
    /** Web pages on these origins may call the proxy listener (CORS). `*` allows all origins. */
    corsOrigins: variables.withDefault("GATEWAY_CORS_ORIGINS", Kinds.PageOrigins, []),
    controlAddress: variables.address("GATEWAY_CONTROL_BIND_ADDR", 8081),
    /** Host names that browsers may use for pages of the control listener that need no token. */
    controlHosts: variables.withDefault("GATEWAY_CONTROL_HOSTS", Kinds.HostNames, []),
    /** The origin at which browsers reach the control listener. With https, their session cookies are restricted to TLS. */
    controlOrigin,
    /** Operators with a browser may sign in at the identity provider. */
    oidcClient,
    /** The listener that serves the upstream's UI to browsers, and its public origin. */
    upstreamUi,
    /** The name of the environment, which the portal shows with a colour of its own for production. */
    environment: variables.optional("SVC_ENVIRONMENT", Kinds.EnvironmentName),
    /** The origin at which applications reach the gateway. The portal's snippets name it. */
    gatewayOrigin: variables.optional("GATEWAY_PUBLIC_ORIGIN", Kinds.WebOrigin),
    /** The listener with the view of holders of gateway keys alone. */
    portal,
    /** The origin at which browsers reach the listener of holders. With https, their session cookies are restricted to TLS. */
    portalOrigin: variables.optional("SVC_PORTAL_ORIGIN", Kinds.WebOrigin),
    /** The listener for statuses, dead letters and graphs. Without a token its address must be a loopback address. */
    ...readStatusListener(variables),
    /** The limit of open event streams, in total and per client address. */
    eventStreams: {
      most: variables.withDefault("SVC_STATUS_MAX_EVENT_STREAMS", Kinds.wholeNumber(1, 1_000_000), 10_000),
      perAddress: variables.optional("SVC_STATUS_MAX_EVENT_STREAMS_PER_ADDRESS", Kinds.wholeNumber(1, 1_000_000))
    },
    /** Log levels by component. `gateway_api` is the control listener, `gateway_proxy` the proxy listener. */
    logLevels: variables.withDefault("LOG_LEVEL", Kinds.LogLevels, Kinds.sameLevel("Info")),
    /** Whether every request to the proxy listener is logged. */
    accessLog: variables.withDefault("GATEWAY_ACCESS_LOG", Kinds.Flag, true),
    /** The release of the tasks, which is shown with their workers and their dead letters. */
    tasksVersion: variables.withDefault("SVC_TASKS_VERSION", Kinds.Release, version),
    /** Whether workers store the messages and stack traces of exceptions. */
    storeExceptionDetails: variables.withDefault("SVC_STORE_EXCEPTION_DETAILS", Kinds.Flag, true),
    // `OperatorTokens.bootstrap` checks the format. The token is needed only while no operator token is active.
    adminToken: variables.optional("GATEWAY_ADMIN_TOKEN", Schema.RedactedFromValue(Schema.String)),
    workerToken: variables.optional("SVC_WORKER_TOKEN", Kinds.Credential),
    encryptionKey: variables.optional("GATEWAY_ENCRYPTION_KEY", Kinds.EncryptionKey),
    /** Decrypts secrets from before a key change. `secrets rotate` encrypts them with the current key. */
    previousEncryptionKey: variables.optional("GATEWAY_PREVIOUS_ENCRYPTION_KEY", Kinds.EncryptionKey),
    connectionLimits: {
      total: maxConnections,
      perAddress: variables.withDefault(
        "GATEWAY_MAX_CONNECTIONS_PER_ADDRESS",
        Kinds.wholeNumber(1),
        FairShare.maximum(maxConnections)
      )
    },
    /** The initial route limits of a new installation. */
    routeLimits: Record.getSomes({
      timeoutMs: variables.optional("GATEWAY_DEFAULT_TIMEOUT_MS", Kinds.wholeNumber(1, maxTimeoutMs)),
      maxRequestBodyBytes: variables.optional("GATEWAY_DEFAULT_MAX_REQUEST_BODY_BYTES", Kinds.BodyBytes),
      maxResponseBodyBytes: variables.optional("GATEWAY_DEFAULT_MAX_RESPONSE_BODY_BYTES", Kinds.BodyBytes)
    }),
    /** The number of days after which rows are deleted. Without a number, rows are kept forever. */
    retention: Record.getSomes({
      usage: variables.optional("SVC_RETENTION_USAGE_DAYS", Kinds.days(1)),
      usageSums: variables.optional("SVC_RETENTION_USAGE_SUMS_DAYS", Kinds.days(minSumsDays)),
      guardrailExecutions: variables.optional("SVC_RETENTION_GUARDRAIL_EXECUTIONS_DAYS", Kinds.days(1))
    }),
    maxBufferedRequests: variables.withDefault("GATEWAY_MAX_BUFFERED_REQUESTS", Kinds.wholeNumber(1), 4096),
    maxInflightBufferBytes: variables.withDefault(
      "GATEWAY_MAX_INFLIGHT_BUFFER_BYTES",
      Kinds.wholeNumber(1),
      536_870_912
    ),
    /** The sizes of connection pools. No variable sets them. */
    pools: {
      databaseSessions: 10,
      // One caller may use a quarter of the connections. A single key can therefore have 1,024 open streams.
      upstream: { connectionsPerOrigin: 4_096, waitingPerOrigin: 4_096, idleConnections: 1_024 }
    },
    /** The number of processes that share the proxy listener. The flag `--workers` comes first. */
    workers: variables.optional("GATEWAY_WORKERS", Kinds.Workers),
    drainSeconds: variables.withDefault("GATEWAY_DRAIN_SECONDS", Kinds.wholeNumber(1), 30),
    /** On shutdown, the seconds between readiness turning false and the listeners closing. */
    drainDelaySeconds: variables.withDefault("GATEWAY_DRAIN_DELAY_SECONDS", Kinds.wholeNumber(0), 0),
    otlp,
    /** The settings that authenticate callers. `none` if no variable configures them. */
    authSettings,
    /** Variables that are set but have no effect, such as a token without an address. The program warns about them. */
    unreadVariables: UnreadVariables.find((variable) => Option.isSome(variables.optional(variable, Schema.String)), {
      upstream: Option.isSome(upstreams.both),
      directCompat: Option.isSome(directCompat),
      studio: Option.isSome(studioBaseUrl),
      upstreamUi: Option.isSome(upstreamUi),
      portal: Option.isSome(portal),
      identityProvider: Option.exists(authSettings, ({ settings }) => settings.identity_enabled),
      signIn: Option.isSome(oidcClient),
      trustedGateway: Option.exists(authSettings, ({ settings }) => settings.trusted_gateway_header_enabled),
      otlp: Option.isSome(otlp)
    })
  }
}

/** Reads all variables and returns either the settings or every mistake. */
export const read = (environment: Environment): Result.Result<Settings, ReadonlyArray<Mistake>> => {
  const variables = new Variables(environment)
  const settings = readSettings(variables)
  return variables.mistakes.length === 0 ? Result.succeed(settings) : Result.fail(variables.mistakes)
}

export const describeMistakes = (mistakes: ReadonlyArray<Mistake>): string =>
  [
    "invalid_configuration: these environment variables are invalid.",
    ...mistakes.map(({ message, variable }) => `  ${variable} ${message}.`)
  ].join("\n")
