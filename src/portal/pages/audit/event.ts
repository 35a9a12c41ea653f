import type { ResponseOf } from "../../api/Endpoints.ts"

export type AuditEvent = ResponseOf<"GET", "/admin-ui/admin/audit-events">[number]

/** Events without a token come from a command of the program, or from a key's holder. */
export const actorOf = ({ action, actor_name, actor_token_id }: AuditEvent): string =>
  actor_name ?? actor_token_id ?? (action.endsWith("_by_holder") ? "holder of the key" : "command of the program")
