import { Link } from "@tanstack/react-router"
import type { Task } from "../../api/TaskTypes.ts"
import { ForeignId } from "../../shared/foreign/ForeignId.tsx"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { shownText } from "../../shared/foreign/marks.ts"
import type { Column } from "../../shared/table/DataTable.tsx"
import { meaningOfTaskStatus } from "../../shared/tasks/meanings.ts"
import { Money } from "../../shared/words/Amounts.tsx"
import { durationText, moneyText } from "../../shared/words/format.ts"
import { StatusWord } from "../../shared/words/StatusWord.tsx"
import { When } from "../../shared/words/When.tsx"
import type { TaskCosts } from "./useTaskCosts.ts"

/** The dearest tasks are known; another one costs no more than they do. */
const Cost = ({ among: { known, otherwise }, of: id }: { readonly among: TaskCosts; readonly of: string }) => {
  const usd = known.get(id)
  if (usd !== undefined || otherwise === 0) return <Money usd={usd} />
  return otherwise === undefined ? (
    "not known"
  ) : (
    <span title="Only the dearest tasks of the range are known exactly.">at most {moneyText(otherwise)}</span>
  )
}

const costCells = (id: string, { known, otherwise }: TaskCosts) => ({
  cost_usd: known.get(id) ?? (otherwise === 0 ? 0 : null),
  cost_usd_at_most: known.has(id) ? null : otherwise
})

const foreign = (text: string | null) => (text === null ? "–" : <ForeignText title={text}>{text}</ForeignText>)

/** `costs` has what the tasks of the range have cost; without the scope for it there is no such column. */
export const columnsWith = (costs: TaskCosts | undefined): ReadonlyArray<Column<Task>> => [
  {
    id: "task_id",
    header: "Task",
    csv: ["task_id"],
    cell: ({ task_id }) => (
      <Link to="/tasks/$taskId" params={{ taskId: task_id }} aria-label={shownText(task_id)}>
        <ForeignId id={task_id} />
      </Link>
    )
  },
  {
    id: "status",
    header: "Status",
    main: true,
    csv: ["status"],
    cell: ({ status }) => (
      <StatusWord meaning={meaningOfTaskStatus(status)}>
        <ForeignText>{status}</ForeignText>
      </StatusWord>
    )
  },
  { id: "task_type", header: "Type", main: true, csv: ["task_type"], cell: ({ task_type }) => foreign(task_type) },
  {
    id: "attempt",
    header: "Retry",
    numeric: true,
    main: true,
    csv: ["attempt"],
    cell: ({ attempt }) => attempt ?? "–"
  },
  // the list knows the statuses of a task alone: it may have waited before the first one
  {
    id: "first_at",
    header: "First status",
    main: true,
    labelled: true,
    csv: ["first_at"],
    cell: ({ first_at }) => <When at={first_at} />
  },
  {
    id: "last_at",
    header: "Last status",
    hidden: true,
    csv: ["last_at"],
    cell: ({ last_at }) => <When at={last_at} />
  },
  {
    id: "duration",
    header: "First to last",
    numeric: true,
    main: true,
    csv: ["duration_ms"],
    cell: ({ duration_ms }) => durationText(duration_ms)
  },
  // why a task has failed is seen without moving the table
  {
    id: "message",
    header: "Last message",
    main: true,
    wide: true,
    csv: ["message"],
    cell: ({ message }) => foreign(message)
  },
  // the other columns fill 1280 pixels: with one of these three the table would have to be moved. The search finds by them
  { id: "queue", header: "Queue", hidden: true, csv: ["queue"], cell: ({ queue }) => foreign(queue) },
  { id: "worker", header: "Worker", hidden: true, csv: ["worker"], cell: ({ worker }) => foreign(worker) },
  {
    id: "parent",
    header: "Parent",
    hidden: true,
    csv: ["parent_id"],
    cell: ({ parent_id }) =>
      parent_id === null ? (
        "–"
      ) : (
        <Link to="/tasks/$taskId" params={{ taskId: parent_id }}>
          <ForeignText>{parent_id}</ForeignText>
        </Link>
      )
  },
  ...(costs === undefined
    ? []
    : [
        {
          id: "cost",
          header: "Cost",
          numeric: true,
          main: true,
          csv: ({ task_id }: Task) => costCells(task_id, costs),
          cell: ({ task_id }: Task) => <Cost of={task_id} among={costs} />
        }
      ]),
  { id: "error", header: "Error", hidden: true, csv: ["error_class"], cell: ({ error_class }) => foreign(error_class) }
]
