import { keepPreviousData } from "@tanstack/react-query"
import { useMemo } from "react"
import { useRange } from "../../address/range.ts"
import { useTextSearch } from "../../address/search.ts"
import { call } from "../../api/control.ts"
import { pagesOf, useRefresh } from "../../api/queries.ts"
import { useReadPages } from "../../api/reads.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { IdLink } from "../../shared/links/IdLink.tsx"
import { LongerRange } from "../../shared/links/LongerRange.tsx"
import { PathLink } from "../../shared/links/PathLink.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { type Column, DataTable } from "../../shared/table/DataTable.tsx"
import { EmptyList } from "../../shared/table/EmptyList.tsx"
import { FilterBar } from "../../shared/table/FilterBar.tsx"
import { durationText } from "../../shared/words/format.ts"
import { When } from "../../shared/words/When.tsx"
import { ActionWord, actions, type Execution } from "./words/words.tsx"

export const executionsPath = "/admin-ui/admin/guardrails/executions"

interface Props {
  /** Without it the executions of all guardrails are listed. */
  readonly name?: string
}

/** Returns what the list asks for, by the address of the page. */
export const useExecutionsQuery = (name: string | undefined) => {
  const { text } = useTextSearch()
  const { range } = useRange()
  return {
    guardrail: name,
    action: actions.find((one) => one === text("action")),
    mode: modes.find((one) => one === text("mode")),
    from: range.from.toISOString(),
    to: range.to.toISOString(),
    limit: 100
  }
}

/** The executions in the range, newest first. They never contain the text. */
export const Executions = ({ name }: Props) => {
  const asked = useExecutionsQuery(name)
  const read = (cursor: string | undefined, signal: AbortSignal) =>
    call("GET", executionsPath, { query: { ...asked, cursor } }, { signal })
  const query = useReadPages<Answer, string | undefined>({
    queryKey: [executionsPath, asked, "pages"],
    queryFn: ({ pageParam, signal }) => read(pageParam, signal),
    initialPageParam: undefined,
    getNextPageParam: ({ next_cursor }) => next_cursor ?? undefined,
    placeholderData: keepPreviousData,
    refetchInterval: useRefresh()
  })
  const rows = useMemo(() => query.data?.pages.flatMap(({ executions }) => executions) ?? [], [query.data])
  const readPages = (signal: AbortSignal) =>
    pagesOf(async (cursor: string | undefined) => {
      const page = await read(cursor, signal)
      return { rows: page.executions, next: page.next_cursor ?? undefined }
    })
  return (
    <Panel query={query} height={360} flush>
      {(instead) => (
        <DataTable
          instead={instead}
          name={name === undefined ? "all-executions" : "guardrail-executions"}
          label="Executions"
          columns={name === undefined ? columnsOfAll : columns}
          rows={rows}
          rowId={({ id }) => id}
          list={{ rows, query, readPages }}
          toolbar={<FilterBar filters={filters} />}
          empty={
            <EmptyList filters={filters} isOfRange={true} unmatched="No run in this range matches these filters.">
              <Empty action={<LongerRange />}>
                {name === undefined ? "No guardrail ran in this range." : "The guardrail did not run in this range."}
              </Empty>
            </EmptyList>
          }
        />
      )}
    </Panel>
  )
}

interface Answer {
  readonly executions: ReadonlyArray<Execution>
  readonly next_cursor: string | null
}

const modes: ReadonlyArray<Execution["mode"]> = ["pre_call", "post_call", "during_call"]

const filters = [
  { name: "action", label: "Action", choices: actions },
  { name: "mode", label: "Mode", choices: modes }
]

const action: Column<Execution> = {
  id: "action",
  header: "Action",
  cell: (execution) => <ActionWord action={execution.action} />
}
const others: ReadonlyArray<Column<Execution>> = [
  { id: "at", header: "Time", main: true, cell: ({ created_at }) => <When at={created_at} /> },
  { id: "mode", header: "Mode", main: true, cell: ({ mode }) => <code>{mode}</code> },
  {
    id: "reason",
    header: "Reason",
    main: true,
    wide: true,
    cell: ({ reason }) => <ForeignText>{reason ?? "–"}</ForeignText>
  },
  { id: "found", header: "Details", short: true, cell: ({ metadata }) => <code>{JSON.stringify(metadata)}</code> },
  { id: "model", header: "Model", cell: ({ model }) => <ForeignText>{model ?? "–"}</ForeignText> },
  { id: "route", header: "Route", hidden: true, cell: ({ route }) => <code>{route}</code> },
  {
    id: "latency",
    header: "Time taken",
    numeric: true,
    main: true,
    cell: ({ latency_ms }) => durationText(latency_ms)
  },
  {
    id: "key",
    header: "Key",
    short: true,
    cell: ({ key_id }) => <IdLink path={`/keys/${encodeURIComponent(key_id)}`}>{key_id}</IdLink>
  },
  {
    id: "request",
    header: "Request",
    short: true,
    cell: ({ request_id }) => <PathLink path={`/requests/${encodeURIComponent(request_id)}`}>{request_id}</PathLink>
  }
]

const columns = [action, ...others]
const columnsOfAll: ReadonlyArray<Column<Execution>> = [
  {
    id: "guardrail",
    header: "Guardrail",
    cell: ({ guardrail_name }) => (
      <IdLink path={`/guardrails/${encodeURIComponent(guardrail_name)}`}>{guardrail_name}</IdLink>
    )
  },
  { ...action, main: true },
  ...others
]
