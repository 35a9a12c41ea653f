import { countedText, countText } from "../../shared/words/format.ts"
import styles from "./Home.module.css"
import { useInventory } from "./useNumbers.ts"

interface Props {
  /** It is asked after what a person looks at first. */
  readonly isAsked: boolean
}

/** Counts the keys that may be used, and the routes and services that are enabled, in one line. */
export const Inventory = ({ isAsked }: Props) => {
  const { data, error } = useInventory(isAsked)
  // its line is held while it loads
  if (data === undefined)
    return (
      <p className={styles.caption}>
        {error === null ? "\u00a0" : `Active keys, routes and services are not known: ${error.message}`}
      </p>
    )
  const { active_keys, active_keys_at_least, routes, services } = data
  return (
    <p className={styles.caption}>
      {active_keys_at_least && "more than "}
      {countedText(active_keys, "active key")} · {enabledText(routes, "route")} · {enabledText(services, "service")}
    </p>
  )
}

const enabledText = ({ enabled, total }: { readonly enabled: number; readonly total: number }, one: string): string =>
  `${countText(enabled)} of ${countedText(total, one)} enabled`
