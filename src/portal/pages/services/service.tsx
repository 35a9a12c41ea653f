import { call } from "../../api/control.ts"
import type { BodyOf, ResponseOf } from "../../api/Endpoints.ts"
import type { ConfigurationSections } from "../../shared/words/CopyAs.tsx"
import { decimalText } from "../../shared/words/format.ts"
import { type Meaning, StatusWord } from "../../shared/words/StatusWord.tsx"

export type Service = ResponseOf<"GET", "/admin-ui/admin/services/:name">
export type ServiceInput = Omit<BodyOf<"PATCH", typeof path>, "expected_updated_at">
export type Endpoint = Service["openapi_endpoints"][number]

export const path = "/admin-ui/admin/services/:name"

export const readService = (name: string): Promise<Service> => call("GET", path, { params: { name } })

/** A service that lacks something cannot be called, enabled or not. */
export const stateOf = ({ enabled, missing_runtime_fields }: Service): readonly [Meaning, string] =>
  missing_runtime_fields.length > 0 ? ["warning", "incomplete"] : enabled ? ["good", "enabled"] : ["idle", "disabled"]

export const StateWord = ({ service }: { readonly service: Service }) => {
  const [meaning, word] = stateOf(service)
  return <StatusWord meaning={meaning}>{word}</StatusWord>
}

/** Returns the service as an entry of the configuration document. */
export const configurationOf = (
  {
    created_at: _,
    credential_configured: _1,
    disabled_at: _2,
    last_synced_at: _3,
    missing_runtime_fields: _4,
    openapi_schema_hash: _5,
    openapi_synced_at: _6,
    project_id: _7,
    source: _8,
    sync_status: _9,
    updated_at: _10,
    ...entry
  }: Service,
  project: string | null
): ConfigurationSections => ({ services: [{ ...entry, project }] })

export const costText = ({
  cost_mode,
  estimated_cost_usd
}: Pick<Service, "cost_mode" | "estimated_cost_usd">): string =>
  cost_mode === "none"
    ? "none"
    : `${cost_mode}${estimated_cost_usd === null ? "" : ` $${decimalText(estimated_cost_usd, 9)}`}`
