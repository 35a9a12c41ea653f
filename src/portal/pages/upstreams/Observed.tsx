import { type Range, useRange } from "../../address/range.ts"
import type { ResponseOf } from "../../api/Endpoints.ts"
import { useApi } from "../../api/queries.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { LongerRange } from "../../shared/links/LongerRange.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { Tile, Tiles } from "../../shared/page/Tile.tsx"
import { type Column, DataTable } from "../../shared/table/DataTable.tsx"
import { Count } from "../../shared/words/Amounts.tsx"
import { countText, durationText, percentText } from "../../shared/words/format.ts"

type Row = ResponseOf<"GET", typeof observedPath>[number]

export const observedPath = "/admin-ui/admin/provider-health"

export const observedRequest = ({ from, to }: Pick<Range, "from" | "to">) => ({
  query: { from: from.toISOString(), to: to.toISOString() }
})

/** Shows how upstreams and services answered the requests of the range, altogether and one by one. */
export const Observed = () => {
  const { range } = useRange()
  const observed = useApi(observedPath, observedRequest(range))
  const rows = observed.data ?? []
  const sumOf = (field: "error_count" | "fallback_count" | "request_count") =>
    rows.reduce((sum, row) => sum + row[field], 0)
  const requests = sumOf("request_count")
  return (
    <>
      <Tiles>
        <Tile
          query={observed}
          label="Observed"
          value={countText(rows.length)}
          detail={rows.length === 1 ? "provider or service with requests" : "providers and services with requests"}
        />
        <Tile
          query={observed}
          label="Error rate"
          value={percentText(sumOf("error_count"), requests)}
          detail={`of ${countText(requests)} requests`}
        />
        <Tile
          query={observed}
          label="Fallbacks"
          value={countText(sumOf("fallback_count"))}
          detail="to another upstream, after a failure"
        />
      </Tiles>
      <Panel title="What requests saw" note="In the range of the top bar." query={observed} height={140} flush>
        <DataTable
          name="observed"
          label="Requests by provider and service"
          columns={columns}
          rows={rows}
          rowId={({ name }) => name}
          empty={<Empty action={<LongerRange />}>No request in this range.</Empty>}
        />
      </Panel>
    </>
  )
}

const columns: ReadonlyArray<Column<Row>> = [
  { id: "name", header: "Name", cell: ({ name }) => <ForeignText>{name}</ForeignText> },
  {
    id: "requests",
    header: "Requests",
    numeric: true,
    main: true,
    cell: ({ request_count }) => <Count of={request_count} short />
  },
  {
    id: "errors",
    header: "Errors",
    numeric: true,
    main: true,
    cell: ({ error_count, request_count }) => `${error_count} (${percentText(error_count, request_count)})`
  },
  {
    id: "timeouts",
    header: "Timeouts",
    numeric: true,
    cell: ({ request_count, timeout_count }) => `${timeout_count} (${percentText(timeout_count, request_count)})`
  },
  { id: "fallbacks", header: "Fallbacks", numeric: true, cell: ({ fallback_count }) => fallback_count },
  {
    id: "latency",
    header: "Mean time",
    numeric: true,
    main: true,
    cell: ({ request_count, total_latency_ms }) =>
      request_count === 0 ? "–" : durationText(total_latency_ms / request_count)
  }
]
