import type { ResponseOf } from "../../api/Endpoints.ts"

type AuditEvent = ResponseOf<"GET", "/admin-ui/admin/audit-events">[number]

/** A member of what an event tells of its object. */
export const memberOf = (json: unknown, name: string): unknown =>
  typeof json === "object" && json !== null ? Reflect.get(json, name) : undefined

/** A session says whose it is. Other acts of holders have names of their own. */
const isByHolder = ({ action, after, before }: AuditEvent): boolean =>
  action.endsWith("_by_holder") || action === "limits:request_raise" || memberOf(after ?? before, "of") === "GatewayKey"

/** Returns who did it. Events without a token come from the holder of a key, from a gateway, or from a command. */
export const actorOf = (event: AuditEvent): string =>
  event.actor_name ??
  event.actor_token_id ??
  (isByHolder(event) ? "holder of the key" : event.user_agent === "gateway" ? "the gateway" : "command of the program")
