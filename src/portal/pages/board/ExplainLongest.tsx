import { Button } from "@mantine/core"
import { Link } from "@tanstack/react-router"
import type { BoardRow } from "./boardRow.ts"

/** The broker does not tell which message waits for the longest time, but workers say what they run. */
export const ExplainLongest = ({ row: { longest, queue } }: { readonly row: BoardRow }) =>
  longest === undefined ? null : (
    <Button
      variant="default"
      size="compact-sm"
      aria-label={`Explain the longest-running task of ${queue}`}
      renderRoot={(props) => <Link {...props} to="/tasks/$taskId" params={{ taskId: longest.task_id }} />}
    >
      Explain
    </Button>
  )
