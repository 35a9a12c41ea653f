import { Schema, Struct } from "effect"
import { defaultWindowChars } from "../../guardrails/Definitions.ts"
import type * as Settings from "../../policy/AuthSettings.ts"
import * as GuardrailPolicy from "../../policy/GuardrailPolicy.ts"
import * as KeyPolicy from "../../policy/KeyPolicy.ts"
import * as Price from "../../policy/Price.ts"
import * as UpstreamBase from "../../policy/routes/UpstreamBase.ts"
import * as SharedLimits from "../../policy/SharedLimits.ts"
import type { AuthSettings } from "../api/AuthSettingsApi.ts"
import {
  type GuardrailEntry,
  KeyEntry,
  LayerEntry,
  type PriceEntry,
  type ServiceEntry
} from "../api/ConfigurationApi.ts"
import type { Guardrail } from "../api/policies/GuardrailsApi.ts"
import type { Service } from "../api/services/ServicesApi.ts"
import { trimBaseUrl, validateBaseUrl, validateOrigin } from "../store/Validation.ts"

/**
 * These functions normalise entries as the store does. An unchanged entry of a document then equals the stored entry.
 * Invalid values stay unchanged, because writing them fails later.
 */

const policyFields = { policy: KeyPolicy.KeyPolicy, guardrail_policy: GuardrailPolicy.GuardrailPolicy }

/** A key entry with complete policies. `key_prefix` is left out, because a rotation of the secret changes it. */
export const ComparableKey = KeyEntry.mapFields(Struct.omit(["key_prefix"])).pipe(Schema.fieldsAssign(policyFields))
export const ComparableLayer = LayerEntry.pipe(
  Schema.fieldsAssign({ ...policyFields, shared: SharedLimits.SharedLimits })
)

const completePolicies = ({ guardrail_policy, policy }: Pick<LayerEntry, "policy" | "guardrail_policy">) => ({
  policy: KeyPolicy.patched(KeyPolicy.neutral, policy),
  guardrail_policy: GuardrailPolicy.patched(GuardrailPolicy.neutral, guardrail_policy)
})

export const unrestrictedPolicies = Schema.encodeSync(
  Schema.toCodecJson(Schema.Struct({ ...policyFields, shared: SharedLimits.SharedLimits })).pipe(
    Schema.encodeTo(Schema.JsonObject)
  )
)({ ...completePolicies({ policy: {}, guardrail_policy: {} }), shared: SharedLimits.none })

export const comparableKey = (key: KeyEntry): typeof ComparableKey.Type => ({
  id: key.id,
  name: key.name,
  owner_type: key.owner_type,
  project: key.project,
  service_names: normalizedLinks(key.service_names),
  team_id: key.team_id,
  disabled: key.disabled,
  expires_at: key.expires_at,
  rotation_due_at: key.rotation_due_at,
  ...completePolicies(key)
})

export const comparableLayer = (layer: LayerEntry): typeof ComparableLayer.Type => ({
  kind: layer.kind,
  scope: layer.kind === "project" ? (layer.scope?.trim() ?? null) : layer.scope,
  enabled: layer.enabled,
  shared: SharedLimits.of(layer.shared ?? {}),
  ...completePolicies(layer)
})

export const normalizedLinks = (names: ReadonlyArray<string>): ReadonlyArray<string> => [...new Set(names)].sort()

export const normalizedOrigin = (url: string): string => (validateOrigin(url) === undefined ? new URL(url).origin : url)

export const normalizedUpstreamBase = (url: string): string =>
  UpstreamBase.refusedAddress(url) === undefined ? UpstreamBase.normalized(url) : url

export const normalizedBaseUrl = (url: string): string => (validateBaseUrl(url) === undefined ? trimBaseUrl(url) : url)

/** Prices are stored in whole nano-dollars. */
export const roundedPrice = (price: PriceEntry): PriceEntry => {
  const nanos = (dollars: number) => Price.toDollars(Price.toNanos(dollars))
  const orNull = (dollars: number | null) => (dollars === null ? null : nanos(dollars))
  return {
    model: price.model,
    input_usd_per_million: nanos(price.input_usd_per_million),
    output_usd_per_million: nanos(price.output_usd_per_million),
    cached_input_usd_per_million: orNull(price.cached_input_usd_per_million),
    cache_write_usd_per_million: orNull(price.cache_write_usd_per_million)
  }
}

export const guardrailEntry = ({
  endpoint_configured: _,
  token_configured: _1,
  updated_at: _2,
  ...entry
}: Guardrail): GuardrailEntry => entry

/** Without these settings, as in a document of an older version, an HTTP guardrail has the defaults of a new one. */
export const withStreamDefaults = (entry: GuardrailEntry): GuardrailEntry =>
  entry.provider_kind === "built_in"
    ? entry
    : {
        ...entry,
        stream_mode: entry.stream_mode ?? "buffer",
        window_chars: entry.window_chars ?? defaultWindowChars
      }

/** Returns only the settings that operators choose. State such as credentials and sync results is left out. */
export const serviceEntry = (service: Service, project: string | null): ServiceEntry => ({
  name: service.name,
  project,
  studio_service_id: service.studio_service_id,
  route_pattern: service.route_pattern,
  upstream_base_url: service.upstream_base_url,
  health_check_path: service.health_check_path,
  health_check_method: service.health_check_method,
  enabled: service.enabled,
  allowed_methods: service.allowed_methods,
  timeout_ms: service.timeout_ms,
  max_body_bytes: service.max_body_bytes,
  cost_mode: service.cost_mode,
  estimated_cost_usd: service.estimated_cost_usd,
  pricing_rules: service.pricing_rules,
  openapi_source_path: service.openapi_source_path,
  openapi_endpoints: service.openapi_endpoints,
  endpoint_pricing_rules: service.endpoint_pricing_rules,
  fallback_services: service.fallback_services
})

/** Settings from the environment are not part of the configuration document. */
export const authSettingsEntry = (settings: AuthSettings): Settings.AuthSettings | undefined => {
  if (settings.source !== "persisted") return undefined
  const { enabled, ...provider } = settings.identity_provider
  return {
    svc_key_header: settings.svc_key_header,
    identity_enabled: enabled,
    ...provider,
    trusted_gateway_header_enabled: settings.trusted_gateway.trusted_header_enabled
  }
}
