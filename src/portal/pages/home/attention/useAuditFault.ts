import { useApi } from "../../../api/queries.ts"
import { useAllowed } from "../../../api/session.ts"
import type { Finding } from "./findings.ts"

/** The latest events are verified here, and the whole chain at the page of the audit log. */
const latest = 500

export const useAuditFault = () => {
  const mayRead = useAllowed("audit:read")
  const head = useApi("/admin-ui/admin/audit-events", { query: { limit: 1 } }, { enabled: mayRead })
  const last = head.data?.[0]?.sequence
  const after = last === undefined ? undefined : Math.max(0, Number(last) - latest)
  const verified = useApi(
    "/admin-ui/admin/audit-events/verification",
    { query: { after, limit: latest } },
    { enabled: after !== undefined }
  )
  const fault = verified.data?.fault ?? null
  const findings: ReadonlyArray<Finding> =
    fault === null
      ? []
      : [
          {
            id: "audit",
            weight: 3,
            sentence: `The audit log is not as it was written: event ${fault.sequence} is ${fault.fault}`,
            path: "/audit",
            search: { do: "verify" }
          }
        ]
  return {
    findings,
    isEnabled: mayRead && after !== undefined,
    isPending: verified.isPending,
    error: head.error ?? verified.error,
    retry: () => {
      for (const query of [head, verified]) if (query.error !== null) void query.refetch()
    }
  }
}
