import { Button, Menu, Tooltip } from "@mantine/core"
import { notifications } from "@mantine/notifications"
import { IconChevronDown } from "@tabler/icons-react"
import { Link, useNavigate } from "@tanstack/react-router"
import { useState } from "react"
import { useAllowed } from "../../../api/session.ts"
import { taskPath, tasksPath } from "../../../api/tasks.ts"
import { ReplayDialog } from "../../../shared/tasks/ReplayDialog.tsx"
import { useMuted } from "../../../shared/tasks/useMuted.ts"
import { curlOf } from "../../../shared/words/CopyAs.tsx"
import { CancelDialog } from "./CancelDialog.tsx"
import type { TaskData } from "./useTask.ts"

/** What can be done with a task, and what can be copied of it. */
export const TaskActions = ({ task: { explanation, letters, taskId, view } }: { readonly task: TaskData }) => {
  const mayOperate = useAllowed("tasks:operate")
  const navigate = useNavigate()
  const { isMuted, setMuted } = useMuted()
  const [asked, setAsked] = useState<"cancel" | "replay">()
  const data = explanation.data
  const letter = letters.data?.items.find(({ dlq_id }) => dlq_id === data?.dlq_id) ?? letters.data?.items[0]
  const isOpen = letter?.state === "dead_lettered"
  const mayEnd = data !== undefined && data.verdict !== "finished" && data.verdict !== "dead_lettered"
  const copy = (text: string, what: string) =>
    void navigator.clipboard.writeText(text).then(
      () => notifications.show({ message: `${what} is copied.` }),
      () => notifications.show({ message: "The browser did not let the page copy.", color: "red" })
    )
  return (
    <>
      {mayOperate && isOpen && <Button onClick={() => setAsked("replay")}>Replay</Button>}
      {mayOperate && isOpen && (
        <Button
          variant="default"
          onClick={() =>
            void navigate({ to: "/dead-letters/$dlqId", params: { dlqId: letter.dlq_id }, search: { tab: "edit" } })
          }
        >
          Edit and replay
        </Button>
      )}
      {letter !== undefined && (
        <Button
          variant="default"
          renderRoot={(props) => <Link {...props} to="/dead-letters/$dlqId" params={{ dlqId: letter.dlq_id }} />}
        >
          Dead letter
        </Button>
      )}
      {mayOperate && mayEnd && (
        <Button variant="default" onClick={() => setAsked("cancel")}>
          Cancel
        </Button>
      )}
      <Tooltip
        label={isMuted(taskId) ? "Lists of this browser leave it out" : "Leave it out of the lists of this browser"}
      >
        <Button
          variant="default"
          onClick={() => {
            setMuted(taskId, !isMuted(taskId))
            // a phone shows no hints
            notifications.show({
              message: isMuted(taskId)
                ? "The lists of this browser show the task again."
                : "The lists of this browser leave the task out. Unmute shows it again."
            })
          }}
        >
          {isMuted(taskId) ? "Unmute" : "Mute"}
        </Button>
      </Tooltip>
      <Menu position="bottom-end">
        <Menu.Target>
          <Button variant="default" rightSection={<IconChevronDown size={14} />}>
            Copy
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => copy(taskId, "The id")}>id</Menu.Item>
          <Menu.Item onClick={() => copy(window.location.href, "The link")}>link</Menu.Item>
          <Menu.Item
            onClick={() =>
              copy(curlOf({ address: tasksPath + taskPath`/executions/${taskId}/explain` }), "The command")
            }
          >
            curl
          </Menu.Item>
          {view.data !== undefined && (
            <Menu.Item onClick={() => copy(view.data.mermaid, "The diagram")}>Mermaid</Menu.Item>
          )}
        </Menu.Dropdown>
      </Menu>
      {asked === "cancel" && <CancelDialog taskId={taskId} onClose={() => setAsked(undefined)} />}
      {asked === "replay" && letter !== undefined && (
        <ReplayDialog
          dlqId={letter.dlq_id}
          queue={letter.source_queue_name}
          of={taskId}
          onClose={() => setAsked(undefined)}
        />
      )}
    </>
  )
}
