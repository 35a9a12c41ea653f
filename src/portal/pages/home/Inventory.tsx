import { Link } from "@tanstack/react-router"
import { useAllowed } from "../../api/session.ts"
import { countedText, countText } from "../../shared/words/format.ts"
import styles from "./Home.module.css"
import { useInventory } from "./useNumbers.ts"

interface Props {
  /** It is asked after what a person looks at first. */
  readonly isAsked: boolean
}

/** One line tells the size of the installation, and how much operators change in it. */
export const Inventory = ({ isAsked }: Props) => {
  const { data, error } = useInventory(isAsked)
  const maySeeLayers = useAllowed("policies:update")
  const maySeeEvents = useAllowed("audit:read")
  // its line is held while it loads
  if (data === undefined)
    return (
      <p className={styles.caption}>
        {error === null ? "\u00a0" : `Active keys, routes and services are not known: ${error.message}`}
      </p>
    )
  const { active_keys, active_keys_at_least, audit_events_of_day, policy_layers, routes, services } = data
  return (
    <p className={styles.caption}>
      {upToText(active_keys, active_keys_at_least, "active key")} · {enabledText(routes, "route")} ·{" "}
      {enabledText(services, "service")}
      {maySeeLayers && (
        <>
          {" · "}
          <Link to="/policies">{upToText(policy_layers, data.policy_layers_at_least, "policy layer")}</Link>
        </>
      )}
      {maySeeEvents && (
        <>
          {" · "}
          <Link to="/audit" search={{ range: "24h" }}>
            {upToText(audit_events_of_day, data.audit_events_of_day_at_least, "audit event")} in 24 hours
          </Link>
        </>
      )}
    </p>
  )
}

/** `isLeast`: the server has stopped counting. */
const upToText = (count: number, isLeast: boolean, one: string): string =>
  `${isLeast ? "more than " : ""}${countedText(count, one)}`

const enabledText = ({ enabled, total }: { readonly enabled: number; readonly total: number }, one: string): string =>
  `${countText(enabled)} of ${countedText(total, one)} enabled`
