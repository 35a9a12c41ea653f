import { useNavigate } from "@tanstack/react-router"
import { useState } from "react"
import { useTextSearch } from "../../../address/search.ts"
import { useTasksList } from "../../../api/queries.ts"
import { useAllowed } from "../../../api/session.ts"
import type { DeadLetterSummary, LetterPage } from "../../../api/TaskTypes.ts"
import { Empty } from "../../../shared/page/Empty.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { DataTable } from "../../../shared/table/DataTable.tsx"
import { type Filter, FilterBar } from "../../../shared/table/FilterBar.tsx"
import { LetterBulk } from "./LetterBulk.tsx"
import { letterColumns } from "./letterColumns.tsx"

const filters: ReadonlyArray<Filter> = [
  { name: "task_id", label: "Task id" },
  { name: "state", label: "State", choices: ["dead_lettered", "replay_unknown", "replayed", "replaced", "archived"] },
  { name: "source_queue_name", label: "Queue" },
  { name: "queue_name", label: "Dead-letter queue" },
  { name: "exception_type", label: "Exception" },
  { name: "reason", label: "Reason" }
]

/** The filters that the address has. */
export const letterQuery = (text: (name: string) => string | undefined) =>
  Object.fromEntries(
    ["task_id", "state", "source_queue_name", "queue_name", "exception_type", "reason"].map((name) => [
      name,
      text(name)
    ])
  )

const rowsOf = ({ items }: LetterPage): ReadonlyArray<DeadLetterSummary> => items
const nothing: ReadonlySet<string> = new Set()

/** Dead letters one by one, the newest first. */
export const Letters = () => {
  const { text } = useTextSearch()
  const navigate = useNavigate()
  const mayOperate = useAllowed("tasks:operate")
  const [selected, setSelected] = useState(nothing)
  const query = letterQuery(text)
  const list = useTasksList<LetterPage, DeadLetterSummary>("/dlq/messages", { ...query, limit: 100 }, rowsOf)
  return (
    <Panel query={list.query} height={300} flush>
      <DataTable
        name="letters"
        label="Dead letters"
        columns={letterColumns}
        rows={list.rows}
        rowId={({ dlq_id }) => dlq_id}
        onOpen={({ dlq_id }) => void navigate({ to: "/dead-letters/$dlqId", params: { dlqId: dlq_id } })}
        list={list}
        {...(mayOperate && { selected, onSelect: setSelected })}
        toolbar={
          selected.size > 0 ? (
            <LetterBulk
              letters={list.rows.filter(({ dlq_id }) => selected.has(dlq_id))}
              onDone={() => setSelected(nothing)}
            />
          ) : (
            <FilterBar filters={filters} />
          )
        }
        empty={<Empty>No dead letter matches. Filters compare whole values.</Empty>}
      />
    </Panel>
  )
}
