import { Schema } from "effect"
import { defaultRoutePattern, ServiceMethod } from "../../policy/routes/Service.ts"
import type { StudioService } from "../api/services/StudioApi.ts"

const maxServices = 1_000

const Text = Schema.optionalKey(Schema.NullOr(Schema.String))
const Texts = Schema.optionalKey(Schema.NullOr(Schema.Array(Schema.String)))
const IdText = Schema.optionalKey(Schema.NullOr(Schema.Union([Schema.String, Schema.Finite])))

/** One service of the studio's export. Unknown fields are ignored. */
const Row = Schema.Struct({
  studio_service_id: IdText,
  service_id: IdText,
  name: Text,
  gateway_service_name: Text,
  display_name: Text,
  base_url: Text,
  health_check_path: Text,
  health_path: Text,
  capabilities_path: Text,
  health_check_method: Text,
  environment: Text,
  status: Text,
  tags: Texts,
  default_route_pattern: Text,
  route_pattern: Text,
  allowed_methods: Texts,
  default_pricing: Schema.optionalKey(Schema.Json)
}).check(Schema.makeFilter((row) => idOf(row) !== undefined, { expected: "a studio_service_id or service_id" }))
type Row = typeof Row.Type

const Rows = Schema.Array(Row).check(Schema.isMaxLength(maxServices))

/** The studio sends `{"services": […]}` or the list alone. */
export const StudioExport = Schema.fromJsonString(Schema.Union([Schema.Struct({ services: Rows }), Rows]))

export const rowsOf = (answer: typeof StudioExport.Type): ReadonlyArray<Row> =>
  "services" in answer ? answer.services : answer

/** Turns a text into a lower-case DNS label with hyphens. Returns `undefined` if nothing remains of the text. */
export const serviceNameOf = (text: string): string | undefined => {
  const label = text
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, maxNameLength + 1)
    .replace(/^-/, "")
    .slice(0, maxNameLength)
    .replace(/-$/, "")
  return label === "" ? undefined : label
}

const maxNameLength = 64

export const toStudioService = (row: Row): StudioService => {
  const studio_service_id = idOf(row) ?? ""
  const name =
    [row.gateway_service_name, row.name, studio_service_id].map((text) => serviceNameOf(text ?? "")).find(isNonEmpty) ??
    "service"
  const route_pattern = [row.default_route_pattern, row.route_pattern].find(isNonEmpty) ?? defaultRoutePattern(name)
  const base_url = row.base_url ?? null
  const tags = row.tags ?? []
  return {
    studio_service_id,
    name,
    display_name: row.display_name ?? row.name ?? null,
    environment: row.environment ?? null,
    status: row.status ?? null,
    base_url,
    tags,
    route_pattern,
    import_request: {
      studio_service_id,
      name,
      project_id: null,
      route_pattern,
      upstream_base_url: base_url,
      health_check_path: [row.health_check_path, row.health_path, row.capabilities_path].find(isNonEmpty) ?? null,
      health_check_method: row.health_check_method?.toUpperCase() === "HEAD" ? "HEAD" : "GET",
      allowed_methods: methodsOf(row.allowed_methods ?? []),
      category: tags[0] ?? null,
      default_pricing: pricingOf(row.default_pricing)
    }
  }
}

const idOf = (row: { readonly studio_service_id?: unknown; readonly service_id?: unknown }): string | undefined =>
  [row.studio_service_id, row.service_id]
    .flatMap((id) => (typeof id === "number" || typeof id === "string" ? [String(id)] : []))
    .find(isNonEmpty)

const isNonEmpty = (text: string | null | undefined): text is string =>
  text !== null && text !== undefined && text !== ""

const methodsOf = (methods: ReadonlyArray<string>): ReadonlyArray<ServiceMethod> => {
  const upperCased = new Set(methods.map((method) => method.toUpperCase()))
  const supported = ServiceMethod.literals.filter((method) => upperCased.has(method))
  return supported.length === 0 ? ["POST"] : supported
}

/** Treats a list as pricing rules. The import validates all other forms. */
const pricingOf = (pricing: Schema.Json | undefined): Schema.Json =>
  Array.isArray(pricing) ? { pricing_rules: pricing } : (pricing ?? null)
