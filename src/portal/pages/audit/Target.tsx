import { Link } from "@tanstack/react-router"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import type { AuditEvent } from "./event.ts"

/** The page of an object, below `/admin-ui`, if it has one. The id is data, so it is only ever a part of an own path. */
const pageOf = (kind: string, id: string): string | undefined => {
  const one = encodeURIComponent(id)
  switch (kind) {
    case "key":
      return `/keys/${one}`
    case "bulk_key_change":
      return `/keys/changes/${one}`
    case "project":
      return `/projects/${one}`
    case "guardrail":
      return `/guardrails/${one}`
    case "service":
      return `/services/${one}`
    case "model_price":
      return "/models"
    case "family_a_route":
    case "family_b_route":
      return "/routes"
    case "provider":
    case "provider_health":
    case "upstream_credential_mapping":
    case "upstream_passthrough_settings":
      return "/upstreams"
    case "policy_layer":
      return "/policies"
    case "operator_token":
      return "/operators"
    case "service_registry":
    case "studio_connection":
      return "/studio"
    case "gateway_auth_settings":
      return "/settings"
    default:
      return undefined
  }
}

/** A name that an object had says more than its id. */
const nameIn = (json: unknown): string | undefined => {
  const name = typeof json === "object" && json !== null ? Reflect.get(json, "name") : undefined
  return typeof name === "string" ? name : undefined
}

export const Target = ({ event }: { readonly event: AuditEvent }) => {
  const { after, before, target_id, target_type } = event
  const words = (
    <>
      <span>{target_type.replaceAll("_", " ")}</span>{" "}
      <ForeignText>{nameIn(after) ?? nameIn(before) ?? target_id}</ForeignText>
    </>
  )
  // what is deleted has no page
  const page = after === null && before !== null ? undefined : pageOf(target_type, target_id)
  return page === undefined ? <span>{words}</span> : <Link to={page}>{words}</Link>
}
