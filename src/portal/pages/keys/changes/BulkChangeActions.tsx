import { Button } from "@mantine/core"
import { useNavigate } from "@tanstack/react-router"
import { call } from "../../../api/control.ts"
import type { ResponseOf } from "../../../api/Endpoints.ts"
import { useAllowed } from "../../../api/session.ts"
import { useConfirm } from "../../../shared/change/useConfirm.tsx"
import { countText } from "../../../shared/words/format.ts"
import { type BulkChange, changePath } from "./bulkChange.tsx"

/** Stops a change, and takes back what it has changed. */
export const BulkChangeActions = ({ change: { id, keys, state } }: { readonly change: BulkChange }) => {
  const mayChange = useAllowed("keys:disable", "policies:update")
  const navigate = useNavigate()
  const { ask, dialog } = useConfirm()
  if (!mayChange) return null
  const params = { id }
  const stop = () =>
    ask({
      title: "Stop the change",
      action: "Stop it",
      body: (
        <p>
          {countText(keys.waiting)} keys stay as they are. Those that were changed stay so, until you undo the change.
        </p>
      ),
      run: () => call("POST", `${changePath}/stop`, { params }),
      done: "The change is stopped."
    })
  const undo = () =>
    ask({
      title: "Undo the change",
      action: "Undo it",
      body: (
        <p>
          {countText(keys.changed)} keys become what they were before, where they still are as the change left them.
        </p>
      ),
      run: async () => {
        const undone: ResponseOf<"POST", `${typeof changePath}/undo`> = await call("POST", `${changePath}/undo`, {
          params
        })
        await navigate({ to: "/keys/changes/$id", params: { id: undone.id } })
      },
      done: "The change is being undone."
    })
  return (
    <>
      {state === "running" && (
        <Button variant="default" onClick={stop}>
          Stop
        </Button>
      )}
      {state !== "running" && keys.changed > 0 && (
        <Button variant="default" onClick={undo}>
          Undo
        </Button>
      )}
      {dialog}
    </>
  )
}
