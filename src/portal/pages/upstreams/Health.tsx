import { Button, Stack } from "@mantine/core"
import { useEffect, useEffectEvent } from "react"
import { type Range, useRange } from "../../address/range.ts"
import { useTextSearch } from "../../address/search.ts"
import { call } from "../../api/control.ts"
import type { ResponseOf } from "../../api/Endpoints.ts"
import { useApi } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { useSubmit } from "../../shared/change/useSubmit.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { LongerRange } from "../../shared/links/LongerRange.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { ErrorNote } from "../../shared/page/ErrorNote.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { type Column, DataTable } from "../../shared/table/DataTable.tsx"
import { Count } from "../../shared/words/Amounts.tsx"
import { curlOf } from "../../shared/words/CopyAs.tsx"
import { durationText, percentText } from "../../shared/words/format.ts"
import { type Meaning, StatusWord } from "../../shared/words/StatusWord.tsx"
import { When } from "../../shared/words/When.tsx"
import { HealthForm } from "./HealthForm.tsx"
import { HealthHistory } from "./HealthHistory.tsx"

export type HealthState = ResponseOf<"GET", "/admin-ui/admin/provider-health/state">[number]
type Observed = ResponseOf<"GET", "/admin-ui/admin/provider-health">[number]

const meanings: Readonly<Record<HealthState["status"], Meaning>> = {
  healthy: "good",
  degraded: "warning",
  unhealthy: "bad",
  unknown: "idle"
}

export const observedPath = "/admin-ui/admin/provider-health"
const checkPath = "/admin-ui/admin/provider-health/check"

export const observedRequest = ({ from, to }: Pick<Range, "from" | "to">) => ({
  query: { from: from.toISOString(), to: to.toISOString() }
})

/** What checks found, what requests saw, and what changed when. It informs people; requests go on whatever it says. */
export const Health = () => {
  const { change, text } = useTextSearch()
  const { range } = useRange()
  const mayChange = useAllowed("providers:update")
  const states = useApi("/admin-ui/admin/provider-health/state", {})
  const observed = useApi(observedPath, observedRequest(range))
  const { error, isBusy, submit } = useSubmit<unknown>()
  const isAsked = text("do") === "check"
  const check = useEffectEvent(() => {
    change({ do: undefined })
    if (mayChange) void submit(() => call("POST", checkPath, {}), { refresh: true })
  })
  useEffect(() => {
    if (isAsked) check()
  }, [isAsked])
  return (
    <Stack gap="sm">
      {error !== null && <ErrorNote error={error} />}
      <Panel
        title="Checks"
        note={isBusy ? "Checking…" : "Each enabled upstream and service, as the last check or an operator left it."}
        query={states}
        height={180}
        flush
        actions={
          mayChange && (
            <>
              <Button variant="default" onClick={() => change({ do: "state" })}>
                Record a state by hand
              </Button>
              <Button variant="default" loading={isBusy} onClick={() => change({ do: "check" })}>
                Run checks
              </Button>
            </>
          )
        }
      >
        <DataTable
          name="health"
          label="States"
          columns={stateColumns}
          rows={states.data ?? []}
          rowId={({ name, provider }) => `${provider} ${name}`}
          onOpen={({ name }) => change({ name })}
          empty={
            <Empty command={mayChange && curlOf({ method: "POST", address: checkPath })}>
              Nothing was checked yet. The simulator is not checked.
            </Empty>
          }
        />
      </Panel>
      <Panel title="What requests saw" note="In the range of the top bar." query={observed} height={140} flush>
        <DataTable
          name="observed"
          label="Requests by provider and service"
          columns={observedColumns}
          rows={observed.data ?? []}
          rowId={({ name }) => name}
          empty={<Empty action={<LongerRange />}>No request in this range.</Empty>}
        />
      </Panel>
      <HealthHistory name={text("name")} />
      {text("do") === "state" && mayChange && (
        <HealthForm states={states.data ?? []} onClose={() => change({ do: undefined })} />
      )}
    </Stack>
  )
}

const stateColumns: ReadonlyArray<Column<HealthState>> = [
  { id: "name", header: "Name", cell: ({ name }) => <ForeignText>{name}</ForeignText> },
  {
    id: "status",
    header: "Status",
    main: true,
    cell: ({ status }) => <StatusWord meaning={meanings[status]}>{status}</StatusWord>
  },
  { id: "provider", header: "Kind", cell: ({ provider }) => provider },
  { id: "error", header: "Reason", main: true, cell: ({ last_error_code }) => <code>{last_error_code ?? "–"}</code> },
  {
    id: "failures",
    header: "Failures in a row",
    numeric: true,
    cell: ({ consecutive_failures }) => consecutive_failures
  },
  { id: "circuit", header: "circuit_state", hidden: true, cell: ({ circuit_state }) => <code>{circuit_state}</code> },
  {
    id: "latency",
    header: "Mean time",
    numeric: true,
    cell: ({ average_latency_ms }) => (average_latency_ms === null ? "–" : durationText(average_latency_ms))
  },
  { id: "checked", header: "Checked", main: true, cell: ({ checked_at }) => <When at={checked_at} absent="never" /> }
]

const observedColumns: ReadonlyArray<Column<Observed>> = [
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
