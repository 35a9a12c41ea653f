import { Button } from "@mantine/core"
import { notifications } from "@mantine/notifications"
import { useQueryClient } from "@tanstack/react-query"
import { callTasks, taskPath, tasksPath } from "../../../api/tasks.ts"
import { countedText } from "../../../shared/words/format.ts"

/** Returns what says that letters are archived, with an Undo. */
export const useArchivedNote = (): ((ids: ReadonlyArray<string>) => void) => {
  const client = useQueryClient()
  const undo = async (ids: ReadonlyArray<string>, note: string) => {
    try {
      for (const id of ids) await callTasks("POST", taskPath`/dlq/messages/${id}/unarchive`)
      notifications.update({
        id: note,
        title: "Taken back",
        message: `${countedText(ids.length, "letter is", "letters are")} open again.`
      })
    } catch (cause) {
      notifications.update({ id: note, color: "red", title: "Not taken back", message: String(cause) })
    }
    void client.invalidateQueries({ queryKey: [tasksPath] })
  }
  return (ids) => {
    const note = notifications.show({ title: `${ids.length} archived`, message: "", autoClose: 12_000 })
    notifications.update({
      id: note,
      title: ids.length === 1 ? "The letter is archived" : `${ids.length} letters are archived`,
      message: (
        <Button variant="default" size="compact-sm" onClick={() => void undo(ids, note)}>
          Undo
        </Button>
      )
    })
  }
}
