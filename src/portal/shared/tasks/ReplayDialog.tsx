import { withQuery } from "../../api/http.ts"
import { useTasksWrite } from "../../api/queries.ts"
import type { Replayed } from "../../api/TaskTypes.ts"
import { taskPath } from "../../api/tasks.ts"
import { ChangeDialog } from "../dialogs/ChangeDialog.tsx"
import { ForeignText } from "../foreign/ForeignText.tsx"
import { useFollowOutcome } from "./useFollowOutcome.tsx"

interface Props {
  readonly dlqId: string
  readonly queue: string
  /** What is replayed, for the note that follows it. */
  readonly of: string
  /** It may have been published before: it may run twice. */
  readonly force?: boolean
  readonly warnings?: ReadonlyArray<string>
  readonly onClose: () => void
}

/** Publishes a dead letter to its queue again, and follows what becomes of it. */
export const ReplayDialog = ({ dlqId, force = false, of, onClose, queue, warnings = [] }: Props) => {
  const replay = useTasksWrite<Replayed>()
  const follow = useFollowOutcome()
  const path = taskPath`/dlq/messages/${dlqId}/replay`
  const query = { force: force || undefined }
  return (
    <ChangeDialog
      title={force ? "Replay it in any case" : "Replay"}
      action={force ? "Replay, although it may run twice" : "Replay"}
      isBusy={replay.isPending}
      error={replay.error}
      onClose={onClose}
      onConfirm={() =>
        replay.mutate(
          { path, query },
          {
            onSuccess: () => {
              onClose()
              follow({ dlqId, of, operation: withQuery(path, query) })
            }
          }
        )
      }
    >
      <p>
        The same message goes to <ForeignText>{queue}</ForeignText> again, and a worker handles it as if it were new.
        {force && " It is not known whether an earlier replay was published: then the task runs twice."}
      </p>
      {warnings.map((warning) => (
        <p key={warning}>{warning}</p>
      ))}
    </ChangeDialog>
  )
}
