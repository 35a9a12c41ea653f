import { Button } from "@mantine/core"
import { useTextSearch } from "../../address/search.ts"
import { useAllowed } from "../../api/session.ts"
import type { QueueView } from "../../api/TaskTypes.ts"

export const PauseButton = ({ view: { paused, queue } }: { readonly view: QueueView }) => {
  const { change } = useTextSearch()
  const mayOperate = useAllowed("tasks:operate")
  if (!mayOperate) return null
  const action = paused === null ? "Pause" : "Resume"
  return (
    <Button
      variant="default"
      size="compact-sm"
      onClick={() => change({ pause: queue })}
      aria-label={`${action} ${queue}`}
    >
      {action}
    </Button>
  )
}
