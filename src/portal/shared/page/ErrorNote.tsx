import { Button } from "@mantine/core"
import { IconCircleX } from "@tabler/icons-react"
import type { ApiError } from "../../api/ApiError.ts"
import styles from "./ErrorNote.module.css"

interface Props {
  readonly error: ApiError
  readonly onRetry?: () => void
}

/** What the server said: its sentence, its code, and the id by which its log knows the request. */
export const ErrorNote = ({ error, onRetry }: Props) => (
  <div className={styles.note} role="alert">
    <IconCircleX size={16} aria-hidden={true} />
    <div>
      <p>{error.message}</p>
      <p className={styles.code}>
        {error.code}
        {error.requestId !== undefined && <> · request {error.requestId}</>}
      </p>
    </div>
    {onRetry !== undefined && (
      <Button variant="default" onClick={onRetry}>
        Try again
      </Button>
    )}
  </div>
)
