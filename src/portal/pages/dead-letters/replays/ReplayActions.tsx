import { Button } from "@mantine/core"
import { useState } from "react"
import { useTasksWrite } from "../../../api/queries.ts"
import { useAllowed } from "../../../api/session.ts"
import type { ReplayJob, ReplayJobDetail } from "../../../api/TaskTypes.ts"
import { taskPath } from "../../../api/tasks.ts"
import { useTell } from "../../../shared/change/useTell.tsx"
import { ChangeDialog } from "../../../shared/dialogs/ChangeDialog.tsx"
import { ReasonDialog } from "../../../shared/dialogs/ReasonDialog.tsx"
import { countedText } from "../../../shared/words/format.ts"

/** Pauses, continues and stops a replay. What is published already cannot be taken back. */
export const ReplayActions = ({ job }: { readonly job: ReplayJobDetail }) => {
  const mayOperate = useAllowed("tasks:operate")
  const [asked, setAsked] = useState<"pause" | "resume" | "cancel">()
  const write = useTasksWrite<ReplayJob>()
  const tell = useTell()
  const { plan, remaining, replay_id, state } = job
  if (!mayOperate || state === "finished" || state === "cancelled") return null
  const close = () => {
    setAsked(undefined)
    write.reset()
  }
  const act = (action: "pause" | "resume" | "cancel", body?: unknown) => {
    const path = `${taskPath`/dlq/replays/${replay_id}`}/${action}`
    write.mutate(
      { path, body },
      {
        onSuccess: (changed) => {
          close()
          tell({
            done: `The replay is ${changed.state}. Left: ${countedText(changed.remaining, "letter")}.`,
            audit: { type: "tasks", id: path }
          })
        }
      }
    )
  }
  const dialog = { isBusy: write.isPending, error: write.error, onClose: close }
  return (
    <>
      {state === "paused" && <Button onClick={() => setAsked("resume")}>Resume</Button>}
      {state === "running" && plan !== undefined && (
        <Button variant="default" onClick={() => setAsked("pause")}>
          Pause
        </Button>
      )}
      <Button variant="default" onClick={() => setAsked("cancel")}>
        Stop for good
      </Button>
      {asked === "pause" && (
        <ReasonDialog
          {...dialog}
          title="Pause the replay"
          action="Pause"
          placeholder="the fix is not out yet"
          onConfirm={(why) => act("pause", why)}
        >
          <p>Nothing more is published. What was published already is still followed.</p>
        </ReasonDialog>
      )}
      {asked === "resume" && (
        <ChangeDialog {...dialog} title="Resume the replay" action="Resume" onConfirm={() => act("resume")}>
          <p>
            {countedText(remaining, "letter is", "letters are")} left. The failures that were counted until now are
            forgotten.
          </p>
        </ChangeDialog>
      )}
      {asked === "cancel" && (
        <ChangeDialog {...dialog} title="Stop the replay for good" action="Stop it" onConfirm={() => act("cancel")}>
          <p>
            {countedText(remaining, "letter is", "letters are")} not replayed, and open as before. What was published
            already cannot be taken back. A stopped replay cannot go on; start another one for the rest.
          </p>
        </ChangeDialog>
      )}
    </>
  )
}
