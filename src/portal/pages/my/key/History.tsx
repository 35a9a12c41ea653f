import type { ResponseOf } from "../../../api/Endpoints.ts"
import { useApi } from "../../../api/queries.ts"
import { Panel } from "../../../shared/page/Panel.tsx"
import { When } from "../../../shared/words/When.tsx"
import styles from "./History.module.css"

type Entry = ResponseOf<"GET", "/admin-ui/v1/me/history">[number]

const words: Readonly<Record<Entry["action"], string>> = {
  created: "The key was made",
  rotated: "An operator gave it a new secret",
  rotated_by_holder: "Its holder gave it a new secret",
  disabled: "An operator switched it off",
  enabled: "An operator switched it on"
}

/** What happened to the secret of the key. */
export const History = () => {
  const history = useApi("/admin-ui/v1/me/history", {})
  return (
    <Panel title="What happened to it" query={history} height={80}>
      <ol className={styles.history}>
        {(history.data ?? []).map(({ action, at }) => (
          <li key={`${at} ${action}`}>
            <span>{words[action]}</span>
            <span className={styles.when}>
              <When at={at} />
            </span>
          </li>
        ))}
      </ol>
    </Panel>
  )
}
