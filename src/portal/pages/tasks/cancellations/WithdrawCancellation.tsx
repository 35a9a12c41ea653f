import { Button } from "@mantine/core"
import { useState } from "react"
import { useTasksWrite } from "../../../api/queries.ts"
import { useAllowed } from "../../../api/session.ts"
import type { CancellationJob } from "../../../api/TaskTypes.ts"
import { taskPath } from "../../../api/tasks.ts"
import { useTell } from "../../../shared/change/useTell.tsx"
import { ChangeDialog } from "../../../shared/dialogs/ChangeDialog.tsx"
import { countedText } from "../../../shared/words/format.ts"

/** Takes back what has had no effect yet, also once the cancellation is over: a request applies for weeks. */
export const WithdrawCancellation = ({ job }: { readonly job: CancellationJob }) => {
  const mayOperate = useAllowed("tasks:operate")
  const withdraw = useTasksWrite<CancellationJob>()
  const tell = useTell()
  const [isAsked, setAsked] = useState(false)
  const { cancellation_id, remaining, requested, state } = job
  const path = taskPath`/tasks/cancellations/${cancellation_id}/withdraw`
  const asks = state === "running"
  if (!mayOperate || (requested === 0 && !asks)) return null
  const close = () => {
    withdraw.reset()
    setAsked(false)
  }
  return (
    <>
      <Button variant="default" onClick={() => setAsked(true)}>
        Withdraw
      </Button>
      {isAsked && (
        <ChangeDialog
          title="Withdraw the cancellation"
          action="Withdraw it"
          isBusy={withdraw.isPending}
          error={withdraw.error}
          onConfirm={() =>
            withdraw.mutate(
              { path },
              {
                onSuccess: () => {
                  setAsked(false)
                  tell({ done: "The cancellation is withdrawn.", audit: { type: "tasks", id: path } })
                }
              }
            )
          }
          onClose={close}
        >
          <p>
            {countedText(requested, "task")} had no answer of a worker yet. The requests of these are taken back, and
            their workers handle them.
            {asks && ` The ${countedText(remaining, "task")} that were not asked for go on too.`} A handler that was
            interrupted already is not continued, and what others have asked for stays.
          </p>
        </ChangeDialog>
      )}
    </>
  )
}
