import { Context, Option, type Redacted, Schema } from "effect"

/** The algorithms with which an identity provider may sign tokens. Shared secrets (HS…) and `none` are not allowed. */
export const Algorithm = Schema.Literals(["RS256", "RS384", "RS512", "ES256", "ES384", "ES512"])
export type Algorithm = typeof Algorithm.Type

const Text = Schema.String.check(Schema.isBetweenLength(1, 512))
const seconds = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

export const AuthSettings = Schema.Struct({
  /** The header that carries the gateway key while identity checks are enabled. */
  svc_key_header: Schema.String,
  identity_enabled: Schema.Boolean,
  tenant_id: Schema.NullOr(Text),
  audience: Schema.NullOr(Text),
  issuer: Schema.NullOr(Text),
  oidc_discovery_url: Schema.NullOr(Schema.String),
  /** The scope that a token must have. `null` disables the check. */
  required_scope: Schema.NullOr(Text),
  required_role: Schema.NullOr(Text),
  /** The caller must be in at least one of these groups. An empty list disables the check. */
  allowed_groups: Schema.Array(Text).check(Schema.isMaxLength(200)),
  accepted_algorithms: Schema.Array(Algorithm).check(Schema.isBetweenLength(1, Algorithm.literals.length)),
  jwks_cache_ttl_seconds: seconds(1, 86_400),
  clock_skew_seconds: seconds(0, 600),
  trusted_gateway_header_enabled: Schema.Boolean
})
export type AuthSettings = typeof AuthSettings.Type

export const disabledAuth: AuthSettings = {
  svc_key_header: "X-Svc-Key",
  identity_enabled: false,
  tenant_id: null,
  audience: null,
  issuer: null,
  oidc_discovery_url: null,
  required_scope: null,
  required_role: null,
  allowed_groups: [],
  accepted_algorithms: ["RS256"],
  jwks_cache_ttl_seconds: 300,
  clock_skew_seconds: 60,
  trusted_gateway_header_enabled: false
}

export interface ConfiguredAuth {
  readonly settings: AuthSettings
  readonly secret: Option.Option<Redacted.Redacted>
}

/** The settings from the environment variables `IDENTITY_*` and `TRUSTED_GATEWAY_*`. Saved settings replace them. */
export const StartupAuthSettings = Context.Reference<Option.Option<ConfiguredAuth>>("svc/policy/StartupAuthSettings", {
  defaultValue: () => Option.none()
})

export const secretContext = "gateway_auth_settings/true"

export interface SettingsMistake {
  readonly field:
    | "svc_key_header"
    | "tenant_id"
    | "audience"
    | "issuer"
    | "oidc_discovery_url"
    | "trusted_gateway_header_secret"
  readonly message: string
}

/** Returns contradictions between settings that are valid on their own, such as a half-configured provider. */
export const mistakes = (settings: AuthSettings, secretConfigured: boolean): ReadonlyArray<SettingsMistake> => {
  const found: Array<SettingsMistake> = []
  const keyHeader = refusedKeyHeader(settings.svc_key_header)
  if (keyHeader !== undefined) found.push({ field: "svc_key_header", message: keyHeader })
  const url = settings.oidc_discovery_url
  if (url !== null && !isDocumentUrl(url)) {
    found.push({
      field: "oidc_discovery_url",
      message: "must be an http or https URL of at most 2048 characters, without user, password or fragment"
    })
  }
  if (settings.identity_enabled) {
    for (const field of ["tenant_id", "audience", "issuer", "oidc_discovery_url"] as const) {
      if (settings[field] === null) found.push({ field, message: "must be set while the identity provider is enabled" })
    }
  }
  if (settings.trusted_gateway_header_enabled && !secretConfigured) {
    found.push({
      field: "trusted_gateway_header_secret",
      message: "must be set while trusted gateway headers are enabled"
    })
  }
  return found
}

const isDocumentUrl = (text: string): boolean => {
  const url = text.length <= 2048 && URL.canParse(text) ? new URL(text) : undefined
  return (
    url !== undefined &&
    /^https?:$/.test(url.protocol) &&
    url.username + url.password === "" &&
    url.hash === "" &&
    !text.includes("#")
  )
}

/** The gateway removes these headers or gives them another meaning, so none of them can carry a gateway key. */
const reservedHeaders = new Set([
  "accept",
  "accept-encoding",
  "authorization",
  "connection",
  "content-encoding",
  "content-length",
  "content-type",
  "cookie",
  "expect",
  "host",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "traceparent",
  "tracestate",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "user-agent",
  "x-aih-api-key",
  "x-request-id",
  "x-svc-applied-guardrails",
  "x-svc-key-id",
  "x-svc-project-id",
  "x-svc-request-id",
  "x-svc-run-id",
  "x-svc-service",
  "x-svc-task-id",
  "x-svc-worker-token",
  "x-trusted-gateway-identity",
  "x-trusted-gateway-signature"
])

const refusedKeyHeader = (name: string): string | undefined => {
  if (!/^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}$/.test(name)) return "must be a header name"
  return reservedHeaders.has(name.toLowerCase()) ? "must be a header without another meaning" : undefined
}
