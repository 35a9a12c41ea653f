import { Alert } from "@mantine/core"
import { IconAlertTriangle, IconInfoCircle } from "@tabler/icons-react"
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { useApi } from "../../../api/queries.ts"
import { When } from "../../../shared/words/When.tsx"
import styles from "./Notices.module.css"
import { StopOldSecret } from "./StopOldSecret.tsx"

const dayMs = 86_400_000
/** From so long before the time on, a person should know. */
const soonMs = 14 * dayMs

const isSoon = (at: string | null): at is string => at !== null && Date.parse(at) - Date.now() < soonMs

/** What the person has to do about the key itself: it ends, or needs a new secret. */
export const Notices = () => {
  const key = useApi("/admin-ui/v1/me", {})
  const held = key.data
  if (held === undefined) return null
  const { expires_at, holder_rotation, previous_key_expires_at, rotation_due_at } = held
  return (
    <div className={styles.notices}>
      {isSoon(expires_at) && (
        <Notice warning>
          Your key stops working <When at={expires_at} />. Ask whoever gave it to you for another one in time.
        </Notice>
      )}
      {isSoon(rotation_due_at) && (
        <Notice warning>
          Your key is due for a new secret <When at={rotation_due_at} />.{" "}
          {holder_rotation ? <Link to="/my/key">Give it one now</Link> : "Ask whoever gave it to you."}
        </Notice>
      )}
      {previous_key_expires_at !== null && Date.parse(previous_key_expires_at) > Date.now() && (
        <Notice>
          Your key has a new secret. The old one stops working <When at={previous_key_expires_at} />.{" "}
          {holder_rotation && <StopOldSecret />}
        </Notice>
      )}
    </div>
  )
}

const Notice = ({ children, warning = false }: { readonly children: ReactNode; readonly warning?: boolean }) => (
  <Alert
    className={styles.notice}
    data-warning={warning || undefined}
    variant="default"
    icon={warning ? <IconAlertTriangle aria-hidden={true} /> : <IconInfoCircle aria-hidden={true} />}
    role="note"
  >
    {children}
  </Alert>
)
