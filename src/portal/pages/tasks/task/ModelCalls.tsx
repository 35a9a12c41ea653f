import { Link } from "@tanstack/react-router"
import { useMemo } from "react"
import type { ResponseOf } from "../../../api/Endpoints.ts"
import { useApi } from "../../../api/queries.ts"
import { useAllowed } from "../../../api/session.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { Empty } from "../../../shared/page/Empty.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { Tile, Tiles } from "../../../shared/page/Tile.tsx"
import { type Column, DataTable } from "../../../shared/table/DataTable.tsx"
import { Count, Money } from "../../../shared/words/Amounts.tsx"
import { countedText, durationText } from "../../../shared/words/format.ts"
import { meaningOfStatus, StatusWord } from "../../../shared/words/StatusWord.tsx"
import { When } from "../../../shared/words/When.tsx"
import type { Attempt } from "../attempts/attempts.ts"
import styles from "./Task.module.css"

type Call = ResponseOf<"GET", "/admin-ui/admin/usage/events">["rows"][number]

const columns: ReadonlyArray<Column<Call>> = [
  {
    id: "request",
    header: "Request",
    cell: ({ request_id }) => (
      <Link to="/requests" search={{ open: request_id }}>
        {request_id.slice(0, 8)}
      </Link>
    )
  },
  {
    id: "status",
    header: "Status",
    main: true,
    cell: ({ error_code, status_code }) => (
      <StatusWord meaning={meaningOfStatus(status_code)}>
        {status_code} {error_code}
      </StatusWord>
    )
  },
  { id: "at", header: "Time", main: true, cell: ({ created_at }) => <When at={created_at} /> },
  { id: "model", header: "Model", main: true, cell: ({ model }) => <ForeignText>{model ?? "–"}</ForeignText> },
  { id: "in", header: "In", numeric: true, cell: ({ input_tokens }) => <Count of={input_tokens} /> },
  { id: "out", header: "Out", numeric: true, cell: ({ output_tokens }) => <Count of={output_tokens} /> },
  {
    id: "cost",
    header: "Cost",
    numeric: true,
    main: true,
    cell: ({ estimated_cost_usd, usage_source }) => <Money usd={estimated_cost_usd} source={usage_source} />
  },
  { id: "latency", header: "Took", numeric: true, main: true, cell: ({ latency_ms }) => durationText(latency_ms) }
]

interface Props {
  readonly taskId: string
  readonly attempts: ReadonlyArray<Attempt>
}

/** The requests to models that the task has made: what they cost, by attempt and in all. */
export const ModelCalls = ({ attempts, taskId }: Props) => {
  const mayRead = useAllowed("usage:read")
  const calls = useApi(
    "/admin-ui/admin/usage/events",
    { query: { task_id: taskId, limit: 500, sort_by: "created_at" } },
    { enabled: mayRead }
  )
  const total = useApi("/admin-ui/admin/tasks/:task_id/usage", { params: { task_id: taskId } }, { enabled: mayRead })
  const rows = calls.data?.rows ?? []
  const sums = useMemo(
    () =>
      sumsOf(
        rows,
        attempts.filter((one) => one.taskId === taskId)
      ),
    [rows, attempts, taskId]
  )
  if (!mayRead)
    return (
      <Empty>
        Model calls need <code>usage:read</code>.
      </Empty>
    )
  return (
    <div className={styles.stack}>
      <Tiles>
        <Tile label="Requests to models" query={total} value={total.data && <Count of={total.data.request_count} />} />
        <Tile label="Cost" query={total} value={total.data && <Money usd={total.data.estimated_cost_usd} />} />
        <Tile label="Tokens in" query={total} value={total.data && <Count of={total.data.input_tokens} short />} />
        <Tile label="Tokens out" query={total} value={total.data && <Count of={total.data.output_tokens} short />} />
      </Tiles>
      {sums.length > 0 && (
        <Panel title="By attempt" note="A request belongs to the attempt during which it was made.">
          <ul className={styles.sums}>
            {sums.map(({ cost, count, label }) => (
              <li key={label}>
                <ForeignText>{label}</ForeignText> {countedText(count, "request")}, <Money usd={cost} />
              </li>
            ))}
          </ul>
        </Panel>
      )}
      <Panel
        title="Requests"
        query={calls}
        height={180}
        flush
        note={calls.data?.has_more ? "The latest 500." : undefined}
      >
        <DataTable
          name="task-calls"
          label="Requests of the task"
          columns={columns}
          rows={rows}
          rowId={({ id }) => String(id)}
          empty={
            <Empty command={`curl … -H 'x-svc-task-id: ${taskId}'`}>
              No request to a model named this task. A request does so with the header <code>x-svc-task-id</code>.
            </Empty>
          }
        />
      </Panel>
    </div>
  )
}

const sumsOf = (calls: ReadonlyArray<Call>, attempts: ReadonlyArray<Attempt>) => {
  const of = Map.groupBy(calls, ({ created_at }) => {
    const at = Date.parse(created_at)
    return attempts.findLast(({ start }) => start <= at)?.label ?? "before the first attempt"
  })
  return [...of].map(([label, made]) => ({
    label,
    count: made.length,
    cost: made.reduce((sum, { estimated_cost_usd }) => sum + (estimated_cost_usd ?? 0), 0)
  }))
}
