import { useNavigate } from "@tanstack/react-router"
import { useRange } from "../../../address/range.ts"
import type { ResponseOf } from "../../../api/Endpoints.ts"
import { useApi } from "../../../api/queries.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { LongerRange } from "../../../shared/links/LongerRange.tsx"
import { PathLink } from "../../../shared/links/PathLink.tsx"
import { Empty } from "../../../shared/page/Empty.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { type Column, DataTable } from "../../../shared/table/DataTable.tsx"
import { Count, Money } from "../../../shared/words/Amounts.tsx"
import { durationText } from "../../../shared/words/format.ts"
import { meaningOfStatus, StatusWord } from "../../../shared/words/StatusWord.tsx"
import { When } from "../../../shared/words/When.tsx"
import type { Key } from "../words/key.ts"

type Event = ResponseOf<"GET", "/admin-ui/admin/usage/events">["rows"][number]

const columns: ReadonlyArray<Column<Event>> = [
  { id: "time", header: "Time", main: true, cell: ({ created_at }) => <When at={created_at} /> },
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
  {
    id: "model",
    header: "Model",
    main: true,
    cell: ({ model }) => (model === null ? "–" : <ForeignText>{model}</ForeignText>)
  },
  { id: "route", header: "Route", cell: ({ route }) => <code>{route}</code> },
  { id: "tokens", header: "Tokens", numeric: true, cell: ({ total_tokens }) => <Count of={total_tokens} short /> },
  {
    id: "cost",
    header: "Cost",
    numeric: true,
    main: true,
    cell: ({ estimated_cost_usd, usage_source }) => <Money usd={estimated_cost_usd} source={usage_source} />
  },
  { id: "latency", header: "Latency", numeric: true, cell: ({ latency_ms }) => durationText(latency_ms) },
  {
    id: "request",
    header: "Request",
    cell: ({ request_id }) => <PathLink path={`/requests/${encodeURIComponent(request_id)}`}>{request_id}</PathLink>
  }
]

const mostShown = 100

/** The latest requests with a key. */
export const KeyRequests = ({ of: key }: { readonly of: Key }) => {
  const { range } = useRange()
  const navigate = useNavigate()
  const query = useApi("/admin-ui/admin/usage/events", {
    query: { key_id: key.id, from: range.from.toISOString(), to: range.to.toISOString(), limit: mostShown }
  })
  return (
    <Panel
      title="Requests"
      note={query.data?.has_more === true && `the latest ${mostShown}`}
      query={query}
      height={360}
      flush
      actions={<PathLink path={`/requests?key_id=${key.id}`}>All requests</PathLink>}
    >
      <DataTable
        name="key-requests"
        label="Requests"
        columns={columns}
        rows={query.data?.rows ?? []}
        rowId={({ id }) => id}
        onOpen={({ request_id }) => void navigate({ to: "/requests/$id", params: { id: request_id } })}
        empty={<Empty action={<LongerRange />}>No request in this range.</Empty>}
      />
    </Panel>
  )
}
