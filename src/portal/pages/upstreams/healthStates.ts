import type { ResponseOf } from "../../api/Endpoints.ts"
import { memberOf } from "../../shared/policy/actor.ts"
import type { Meaning } from "../../shared/words/StatusWord.tsx"

export type HealthState = ResponseOf<"GET", "/admin-ui/admin/provider-health/state">[number]
export type HealthEvent = ResponseOf<"GET", "/admin-ui/admin/audit-events">[number]
type Status = HealthState["status"]

export const meaningOfHealth: Readonly<Record<Status, Meaning>> = {
  unhealthy: "bad",
  degraded: "warning",
  unknown: "idle",
  healthy: "good"
}

/** The worst first. */
export const healthStatuses: ReadonlyArray<Status> = ["unhealthy", "degraded", "unknown", "healthy"]

/** A provider and a service may have the same name. The audit log names them so, too. */
export const subjectOf = ({ name, provider }: { readonly name: string; readonly provider: string }): string =>
  `${provider}/${name}`

export interface Recorded {
  readonly subject: string
  readonly status: Status
  readonly reason: string | null
}

/** The states that an event recorded: one by hand, or those of all that were checked. */
export const recordedStates = ({ after }: Pick<HealthEvent, "after">): ReadonlyArray<Recorded> => {
  const results = memberOf(after, "results")
  return (Array.isArray(results) ? results : [after]).flatMap((state): ReadonlyArray<Recorded> => {
    const status = healthStatuses.find((one) => one === memberOf(state, "status"))
    const [name, provider, reason] = ["name", "provider", "last_error_code"].map((member) => memberOf(state, member))
    if (status === undefined || typeof name !== "string" || typeof provider !== "string") return []
    return [{ subject: subjectOf({ name, provider }), status, reason: typeof reason === "string" ? reason : null }]
  })
}
