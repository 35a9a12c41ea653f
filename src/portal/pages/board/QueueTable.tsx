import type { ReactNode } from "react"
import type { DeadLetterQueue, QueueView, WorkerReport } from "../../api/TaskTypes.ts"
import { DataTable } from "../../shared/table/DataTable.tsx"
import { deadCounts } from "./alarms.ts"
import type { BoardRow } from "./boardRow.ts"
import { queueColumns } from "./queueColumns.tsx"

interface Props {
  readonly queues: ReadonlyArray<QueueView>
  readonly workers: ReadonlyArray<WorkerReport>
  readonly letters: ReadonlyArray<DeadLetterQueue> | undefined
  readonly empty: ReactNode
}

/** One row for each queue. */
export const QueueTable = ({ empty, letters, queues, workers }: Props) => {
  const rows = queues.map(
    (view): BoardRow => ({
      ...view,
      longest: longestOn(view.queue, workers),
      ...deadCounts(view, letters)
    })
  )
  return (
    <DataTable
      name="board"
      label="Queues"
      columns={queueColumns}
      rows={rows}
      rowId={({ queue }) => queue}
      empty={empty}
    />
  )
}

const longestOn = (queue: string, workers: ReadonlyArray<WorkerReport>): BoardRow["longest"] =>
  workers
    .flatMap(({ consumers }) => consumers.filter((consumer) => consumer.queue === queue))
    .flatMap(({ running }) => running)
    .reduce<BoardRow["longest"]>(
      (oldest, one) => (oldest === undefined || one.started_at < oldest.started_at ? one : oldest),
      undefined
    )
