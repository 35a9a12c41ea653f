/** A variable that is set but has no effect. */
export interface UnreadVariable {
  readonly variable: string
  readonly reason: string
}

/** The parts of the program that variables turn on. */
export interface EnabledParts {
  readonly upstream: boolean
  readonly directCompat: boolean
  readonly studio: boolean
  readonly upstreamUi: boolean
  readonly portal: boolean
  readonly identityProvider: boolean
  readonly signIn: boolean
  readonly trustedGateway: boolean
  readonly otlp: boolean
}

const inMemoryOnly = "the gateway keeps PII placeholders only in the memory of a request"
const noIdentityProvider = "IDENTITY_AUTH_ENABLED is not true"
const noTrustedGateway = "TRUSTED_GATEWAY_HEADER_ENABLED is not true"

/** Only the role and its options tell whether a variant inside the process uses the data directory. */
export const unusedDataDirectory: UnreadVariable = {
  variable: "SVC_DATA_DIR",
  reason: "the role uses only real servers"
}

/** Only the role tells whether the process has workers. */
export const unusedWorkers: UnreadVariable = {
  variable: "GATEWAY_WORKERS",
  reason: "only the role gateway has workers"
}

/** Returns the variables that only disabled parts of the program would read. */
export const find = (isSet: (variable: string) => boolean, parts: EnabledParts): ReadonlyArray<UnreadVariable> => {
  const unless = (enabled: boolean, reason: string, variables: ReadonlyArray<string>) =>
    enabled ? [] : variables.filter(isSet).map((variable) => ({ variable, reason }))
  return [
    ...unless(false, inMemoryOnly, ["GUARDRAIL_PII_MAPPING_TTL_SECONDS", "GUARDRAIL_MAPPING_ENCRYPTION_KEY"]),
    ...unless(parts.upstream, "UPSTREAM_BASE_URL is not set", ["UPSTREAM_SERVICE_KEY"]),
    ...unless(parts.directCompat, "DIRECT_COMPAT_BASE_URL is not set", [
      "DIRECT_COMPAT_ALLOWED_PATHS",
      "DIRECT_COMPAT_OWNERSHIP"
    ]),
    ...unless(parts.studio, "SVC_STUDIO_BASE_URL is not set", ["SVC_STUDIO_TOKEN"]),
    ...unless(parts.upstreamUi, "GATEWAY_UPSTREAM_UI_BIND_ADDR is not set", ["GATEWAY_UPSTREAM_UI_ORIGIN"]),
    ...unless(parts.portal, "SVC_PORTAL_BIND_ADDR is not set", ["SVC_PORTAL_ORIGIN"]),
    ...unless(parts.signIn, "IDENTITY_SIGN_IN_CLIENT_ID is not set", [
      "IDENTITY_SIGN_IN_GROUPS_CLAIM",
      "IDENTITY_SIGN_IN_GROUP_SCOPES",
      "IDENTITY_SIGN_IN_REQUESTED_SCOPES"
    ]),
    ...unless(parts.identityProvider, noIdentityProvider, ["IDENTITY_AUDIENCE"]),
    ...unless(parts.identityProvider || parts.signIn, noIdentityProvider, [
      "IDENTITY_ISSUER",
      "IDENTITY_OIDC_DISCOVERY_URL",
      "IDENTITY_ACCEPTED_ALGORITHMS",
      "IDENTITY_JWKS_CACHE_TTL_SECONDS"
    ]),
    // Tokens of the provider and signed headers must both meet these requirements.
    ...unless(parts.identityProvider || parts.trustedGateway, `${noIdentityProvider}, and ${noTrustedGateway}`, [
      "IDENTITY_REQUIRED_SCOPE",
      "IDENTITY_REQUIRED_ROLE",
      "IDENTITY_ALLOWED_GROUPS"
    ]),
    ...unless(
      parts.identityProvider || parts.trustedGateway || parts.signIn,
      `${noIdentityProvider}, and ${noTrustedGateway}`,
      ["IDENTITY_TENANT_ID", "IDENTITY_CLOCK_SKEW_SECONDS"]
    ),
    ...unless(parts.trustedGateway, noTrustedGateway, ["TRUSTED_GATEWAY_HEADER_SECRET"]),
    ...unless(parts.otlp, "OTEL_EXPORTER_OTLP_ENDPOINT is not set", [
      "OTEL_EXPORTER_OTLP_HEADERS",
      "OTEL_SERVICE_NAME",
      "OTEL_RESOURCE_ATTRIBUTES",
      "OTEL_TRACES_SAMPLER",
      "OTEL_TRACES_SAMPLER_ARG",
      "OTEL_SEMCONV_STABILITY_OPT_IN"
    ])
  ]
}
