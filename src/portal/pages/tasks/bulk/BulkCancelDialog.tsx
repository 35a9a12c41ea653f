import { useNavigate } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import { useTasksWrite } from "../../../api/queries.ts"
import type { CancellationJob } from "../../../api/TaskTypes.ts"
import { useTell } from "../../../shared/change/useTell.tsx"
import { ReasonDialog } from "../../../shared/dialogs/ReasonDialog.tsx"
import { randomKey } from "../../../shared/tasks/randomKey.ts"
import { cancellationsPath } from "../cancellations/cancellation.ts"

interface Props {
  /** Tasks by their ids, or a search: the server picks those that match when the request arrives. */
  readonly selection:
    | { readonly task_ids: ReadonlyArray<string> }
    | { readonly query: Readonly<Record<string, string>> }
  /** Which tasks, such as `12 tasks`. */
  readonly what: string
  readonly children: ReactNode
  readonly onClose: () => void
}

/** Begins to cancel many tasks. The page of the cancellation shows how far it is, also after the browser was closed. */
export const BulkCancelDialog = ({ children, onClose, selection, what }: Props) => {
  const [idempotencyKey] = useState(randomKey)
  const begin = useTasksWrite<CancellationJob>()
  const navigate = useNavigate()
  const tell = useTell()
  return (
    <ReasonDialog
      title={`Cancel ${what}`}
      action={`Cancel ${what}`}
      dismiss="Keep them"
      isDestructive
      {...("query" in selection && { name: what })}
      placeholder="a wrong campaign"
      isBusy={begin.isPending}
      error={begin.error}
      onClose={onClose}
      onConfirm={(why) =>
        begin.mutate(
          {
            path: cancellationsPath,
            body: { ...selection, ...why },
            headers: { "idempotency-key": idempotencyKey }
          },
          {
            onSuccess: ({ cancellation_id: id }) => {
              void navigate({ to: "/tasks/cancellations/$id", params: { id } })
              tell({ done: "The cancellation has begun.", audit: { type: "tasks", id: cancellationsPath } })
            }
          }
        )
      }
    >
      {children}
      <p>Workers interrupt what runs, and do not begin what waits. Tasks that have ended stay as they are.</p>
    </ReasonDialog>
  )
}
