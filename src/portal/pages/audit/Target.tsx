import { Link } from "@tanstack/react-router"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { memberOf } from "../../shared/policy/actor.ts"
import type { AuditEvent } from "./event.ts"

/** The page of an object, below `/admin-ui`, if it has one. The id is data, so it is only ever a part of an own path. */
const pageOf = ({ after, before, target_id, target_type }: AuditEvent): string | undefined => {
  const one = encodeURIComponent(target_id)
  switch (target_type) {
    case "tasks":
      return pageOfTasks(target_id)
    case "session":
      return memberOf(after ?? before, "of") === "GatewayKey"
        ? `/keys/${encodeURIComponent(String(memberOf(after ?? before, "id")))}`
        : "/operators"
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

const letterPath = /^\/dlq\/messages\/([^/?]+)/
const replayPath = /^\/dlq\/replays\/([^/?]+)/
const taskPath = /^\/tasks\/([^/?]+)/

/** Operations on tasks have the path that was asked for in place of an id. */
const pageOfTasks = (path: string): string | undefined => {
  const letter = letterPath.exec(path)?.[1]
  if (letter !== undefined) return `/dead-letters/${letter}`
  const replay = replayPath.exec(path)?.[1]
  if (replay !== undefined) return `/dead-letters/replays/${replay}`
  const task = taskPath.exec(path)?.[1]
  if (task !== undefined) return `/tasks/${task}`
  return path.startsWith("/queues/") ? "/tasks/board" : path.startsWith("/dlq") ? "/dead-letters" : undefined
}

/** The name that an object had then. */
const nameIn = (json: unknown): string | undefined => {
  const name = memberOf(json, "name")
  return typeof name === "string" ? name : undefined
}

export const Target = ({ event }: { readonly event: AuditEvent }) => {
  const { after, before, target_id, target_name, target_type } = event
  const words = (
    <>
      <span>{target_type.replaceAll("_", " ")}</span>{" "}
      <ForeignText title={target_id}>{nameIn(after) ?? nameIn(before) ?? target_name ?? target_id}</ForeignText>
    </>
  )
  // what is deleted has no page
  const isGone = after === null && before !== null && target_type !== "session"
  const page = isGone ? undefined : pageOf(event)
  return page === undefined ? <span>{words}</span> : <Link to={page}>{words}</Link>
}
