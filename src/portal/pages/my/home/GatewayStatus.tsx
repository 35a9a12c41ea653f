import { Link } from "@tanstack/react-router"
import { useApi } from "../../../api/queries.ts"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import { When } from "../../../shared/words/When.tsx"
import styles from "./GatewayStatus.module.css"

/** In one line: whether the gateway works, and how the last request went. */
export const GatewayStatus = () => {
  const ready = useApi("/admin-ui/readyz", {}, { refreshMs: 30_000 })
  const last = useApi("/admin-ui/v1/me/requests", { query: { limit: 1 } }, { refreshMs: 15_000 })
  const request = last.data?.rows[0]
  // the gateway may call itself ready, and yet not be able to read what it has recorded
  const isUnreadable = last.error !== null && last.error.status >= 500
  return (
    <span className={styles.status}>
      {ready.error?.status === 503 ? (
        <StatusWord meaning="bad">The gateway takes no requests at the moment</StatusWord>
      ) : ready.error !== null ? (
        <StatusWord meaning="idle">Not known: the portal does not answer</StatusWord>
      ) : ready.data === undefined ? (
        <StatusWord meaning="idle">Asking the gateway</StatusWord>
      ) : ready.data.status === "degraded" || isUnreadable ? (
        <StatusWord meaning="warning">The gateway works, with difficulties</StatusWord>
      ) : (
        <StatusWord meaning="good">The gateway works</StatusWord>
      )}
      {isUnreadable && <span>How your last request went cannot be read at the moment.</span>}
      {request !== undefined && !isUnreadable && (
        <span>
          Your last request was <When at={request.created_at} />
          {request.status === "success"
            ? " and succeeded."
            : request.refusal === null
              ? " and failed: "
              : " and was refused: "}
          {request.status === "failure" && (
            <Link to="/my/requests" search={{ open: request.id }}>
              see why
            </Link>
          )}
        </span>
      )}
      {last.data !== undefined && request === undefined && !isUnreadable && (
        <span>
          You have not sent a request yet. <Link to="/my/use">See how</Link>
        </span>
      )}
    </span>
  )
}
