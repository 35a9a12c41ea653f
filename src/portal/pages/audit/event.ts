import type { ResponseOf } from "../../api/Endpoints.ts"

export type AuditEvent = ResponseOf<"GET", "/admin-ui/admin/audit-events">[number]
