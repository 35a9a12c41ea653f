import type { ReactNode } from "react"
import type { QueueView, WorkerReport } from "../../api/TaskTypes.ts"
import { DataTable } from "../../shared/table/DataTable.tsx"
import type { BoardRow } from "./boardRow.ts"
import { queueColumns } from "./queueColumns.tsx"

interface Props {
  readonly queues: ReadonlyArray<QueueView>
  readonly workers: ReadonlyArray<WorkerReport>
  readonly empty: ReactNode
}

/** One row for each queue. */
export const QueueTable = ({ empty, queues, workers }: Props) => {
  const rows = queues.map((view): BoardRow => ({ ...view, longest: longestOn(view.queue, workers) }))
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
