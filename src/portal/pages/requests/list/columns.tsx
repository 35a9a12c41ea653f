import { Link } from "@tanstack/react-router"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import type { Column } from "../../../shared/table/DataTable.tsx"
import type { UsageRow } from "../../../shared/usage/useUsageEvents.ts"
import { Count, Money } from "../../../shared/words/Amounts.tsx"
import { meaningOfStatus, StatusWord } from "../../../shared/words/StatusWord.tsx"
import { When } from "../../../shared/words/When.tsx"
import { LatencyBar } from "./LatencyBar.tsx"
import { isLive } from "./liveRow.ts"
import styles from "./RequestList.module.css"

const text = (value: string | null) => (value === null ? "–" : <ForeignText title={value}>{value}</ForeignText>)

/** The status, and in one word why it is no success. */
const Outcome = ({ row }: { readonly row: UsageRow }) => (
  <>
    <StatusWord meaning={row.status === "failure" ? meaningOfStatus(Math.max(400, row.status_code)) : "good"}>
      {row.status_code}
    </StatusWord>{" "}
    {row.error_code !== null && <code className={styles.code}>{row.denied_by ?? row.error_code}</code>}
  </>
)

const Work = ({ row: { session_id, task_id } }: { readonly row: UsageRow }) =>
  task_id !== null ? (
    <Link to={`/tasks/${encodeURIComponent(task_id)}` as string}>
      <ForeignText>{task_id}</ForeignText>
    </Link>
  ) : (
    text(session_id)
  )

/** `longest` is the duration that fills a bar of latency; `nameOf` knows the names of keys that the live feed does not tell. */
export const columnsOf = (
  longest: number,
  nameOf: (keyId: string) => string | undefined
): ReadonlyArray<Column<UsageRow>> => [
  {
    id: "time",
    header: "Time",
    sort: "created_at",
    width: 110,
    csv: ["created_at", "request_id"],
    cell: ({ created_at }) => <When at={created_at} />
  },
  // the reason of a refusal takes a line
  {
    id: "status",
    header: "Status",
    sort: "status_code",
    main: true,
    wide: true,
    csv: ["status_code", "error_code", "denied_by"],
    cell: (row) => <Outcome row={row} />
  },
  {
    id: "key",
    header: "Key",
    short: true,
    main: true,
    csv: ["key_id", "key_name", "key_prefix"],
    cell: (row) => text(row.key_name ?? nameOf(row.key_id) ?? row.key_prefix)
  },
  {
    id: "project",
    header: "Project",
    short: true,
    hidden: true,
    csv: ["project_id", "project_name"],
    cell: ({ project_name }) => text(project_name)
  },
  { id: "team", header: "Team", short: true, hidden: true, csv: ["team_id"], cell: ({ team_id }) => text(team_id) },
  { id: "model", header: "Model", short: true, main: true, csv: ["model"], cell: ({ model }) => text(model) },
  {
    id: "latency",
    header: "Duration",
    sort: "latency",
    numeric: true,
    main: true,
    csv: ["latency_ms"],
    cell: (row) => <LatencyBar row={row} longest={longest} />
  },
  {
    id: "cost",
    header: "Cost",
    sort: "cost",
    numeric: true,
    main: true,
    csv: ["estimated_cost_usd", "usage_source"],
    cell: (row) => (
      <Money
        usd={row.estimated_cost_usd}
        source={row.estimated_cost_usd === null || isLive(row) ? null : row.usage_source}
      />
    )
  },
  {
    id: "tokens",
    header: "In / out / cached",
    sort: "tokens",
    numeric: true,
    main: true,
    wide: true,
    csv: ["input_tokens", "output_tokens", "cached_input_tokens"],
    cell: ({ cached_input_tokens, input_tokens, output_tokens }) =>
      input_tokens === null && output_tokens === null ? (
        "–"
      ) : (
        <>
          <Count of={input_tokens} short /> / <Count of={output_tokens} short /> /{" "}
          <Count of={cached_input_tokens} short />
        </>
      )
  },
  {
    id: "work",
    header: "Session or task",
    short: true,
    csv: ["session_id", "task_id"],
    cell: (row) => <Work row={row} />
  },
  // the other columns fill 1280 pixels: with the route the table would have to be moved. The drawer has it, and a filter
  {
    id: "route",
    header: "Route",
    hidden: true,
    csv: ["route", "service_name"],
    cell: ({ route, service_name }) => text(service_name ?? route)
  },
  { id: "provider", header: "Provider", hidden: true, csv: ["provider"], cell: ({ provider }) => text(provider) },
  { id: "client", header: "Client", hidden: true, csv: ["client"], cell: ({ client }) => text(client) },
  { id: "subject", header: "Subject", hidden: true, csv: ["subject"], cell: ({ subject }) => text(subject) }
]
