import { Button } from "@mantine/core"
import { IconCircleX } from "@tabler/icons-react"
import type { ApiError } from "../../api/ApiError.ts"
import { useRetry } from "../../api/useRetry.ts"
import styles from "./ErrorNote.module.css"

interface Props {
  readonly error: ApiError
  /** If it returns a promise, the button says that it is asking until the promise settles. */
  readonly onRetry?: () => unknown
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
    {onRetry !== undefined && <Retry onRetry={onRetry} />}
  </div>
)

const Retry = ({ onRetry }: { readonly onRetry: () => unknown }) => {
  const { isAsking, retry } = useRetry(onRetry)
  return (
    <Button variant="default" onClick={retry} aria-busy={isAsking}>
      {isAsking ? "Asking…" : "Try again"}
    </Button>
  )
}
