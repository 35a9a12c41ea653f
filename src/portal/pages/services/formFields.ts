import type { ApiError } from "../../api/ApiError.ts"
import type { Service, ServiceInput } from "./service.tsx"

/** The settings that the form edits. Empty texts and `null` stand for what is not set. */
export interface Fields {
  readonly project_id: string | null
  /** A service that is being registered has no such field yet. */
  readonly sync_status: Service["sync_status"]
  readonly upstream_base_url: string
  readonly route_pattern: string
  readonly allowed_methods: ReadonlyArray<Service["allowed_methods"][number]>
  readonly health_check_path: string
  readonly health_check_method: Service["health_check_method"]
  readonly timeout_ms: number | null
  readonly max_body_bytes: number | null
  readonly fallback_services: ReadonlyArray<string>
  readonly cost_mode: Service["cost_mode"]
  readonly estimated_cost_usd: number | null
  readonly pricing_rules: Service["pricing_rules"]
  /** Empty keeps what is stored. */
  readonly credential: string
  readonly isCredentialCleared: boolean
}

export interface FieldsProps {
  readonly fields: Fields
  readonly set: (part: Partial<Fields>) => void
  readonly error: ApiError | null
}

export const fieldsOf = (service: Service | undefined): Fields => ({
  project_id: service?.project_id ?? null,
  sync_status: service?.sync_status ?? "local",
  upstream_base_url: service?.upstream_base_url ?? "",
  route_pattern: service?.route_pattern ?? "",
  allowed_methods: service?.allowed_methods ?? [],
  health_check_path: service?.health_check_path ?? "",
  health_check_method: service?.health_check_method ?? "GET",
  timeout_ms: service?.timeout_ms ?? null,
  max_body_bytes: service?.max_body_bytes ?? null,
  fallback_services: service?.fallback_services ?? [],
  cost_mode: service?.cost_mode ?? "none",
  estimated_cost_usd: service?.estimated_cost_usd ?? null,
  pricing_rules: service?.pricing_rules ?? [],
  credential: "",
  isCredentialCleared: false
})

/** The settings of a service in a difference, by the names of the API. A secret is never shown. */
export const shownOf = (service: Service) => ({
  project_id: service.project_id,
  sync_status: service.sync_status,
  upstream_base_url: service.upstream_base_url,
  route_pattern: service.route_pattern,
  allowed_methods: service.allowed_methods,
  health_check_path: service.health_check_path,
  health_check_method: service.health_check_method,
  timeout_ms: service.timeout_ms,
  max_body_bytes: service.max_body_bytes,
  fallback_services: service.fallback_services,
  cost_mode: service.cost_mode,
  estimated_cost_usd: service.estimated_cost_usd,
  pricing_rules: service.pricing_rules,
  credential: service.credential_configured ? "configured" : null,
  enabled: service.enabled
})

/** What the API takes of the fields that were changed. `null` restores a default. */
export const inputOf = ({ credential, isCredentialCleared, ...changed }: Partial<Fields>): ServiceInput => {
  const { allowed_methods, health_check_path, route_pattern, upstream_base_url, ...rest } = changed
  return {
    ...rest,
    ...(upstream_base_url !== undefined && { upstream_base_url: orNull(upstream_base_url) }),
    ...(route_pattern !== undefined && { route_pattern: orNull(route_pattern) }),
    ...(health_check_path !== undefined && { health_check_path: orNull(health_check_path) }),
    ...(allowed_methods !== undefined && { allowed_methods: allowed_methods.length === 0 ? null : allowed_methods }),
    ...(credential !== undefined && credential !== "" && { credential }),
    ...(isCredentialCleared === true && (credential ?? "") === "" && { credential: null })
  }
}

const orNull = (text: string): string | null => (text.trim() === "" ? null : text.trim())

export const numberOf = (value: string | number): number | null => (typeof value === "number" ? value : null)
