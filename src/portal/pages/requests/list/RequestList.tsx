import { useQueryClient } from "@tanstack/react-query"
import { useMemo, useState } from "react"
import { useRange } from "../../../address/range.ts"
import { useTextSearch } from "../../../address/search.ts"
import { LongerRange } from "../../../shared/links/LongerRange.tsx"
import { Empty } from "../../../shared/page/Empty.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { firstCommand } from "../../../shared/snippets/firstCommand.ts"
import { DataTable } from "../../../shared/table/DataTable.tsx"
import { EmptyList } from "../../../shared/table/EmptyList.tsx"
import { filterFields, type UsageFilters } from "../../../shared/usage/fields.ts"
import { UsageFilterBar } from "../../../shared/usage/UsageFilterBar.tsx"
import { eventsPath, type UsageRow, useUsageEvents } from "../../../shared/usage/useUsageEvents.ts"
import { columnsOf } from "./columns.tsx"
import styles from "./RequestList.module.css"
import { TailNote } from "./TailNote.tsx"
import { joined } from "./tail.ts"
import { useHold } from "./useHold.ts"
import { useTail } from "./useTail.ts"

const sorts = ["created_at", "cost", "latency", "tokens", "status_code"] as const

/** Recorded requests, and above them those that have just ended. */
export const RequestList = ({ filters }: { readonly filters: UsageFilters }) => {
  const { change, text } = useTextSearch()
  const queries = useQueryClient()
  const times = useTimes()
  const sortBy = sorts.find((sort) => sort === text("sort_by")) ?? "created_at"
  const isReversed = text("sort_order") === "asc"
  const isOn = times.isRelative && sortBy === "created_at" && !isReversed
  const list = useUsageEvents({
    ...filters,
    from: times.from,
    ...(times.to !== undefined && { to: times.to }),
    sort_by: sortBy,
    sort_order: isReversed ? "asc" : "desc"
  })
  const reload = () => void queries.invalidateQueries({ queryKey: [eventsPath] })
  const { hold, release, tail } = useTail({ filters, isOn, list: list.rows, onReset: reload })
  const { props, toTop } = useHold(hold)
  const rows = useMemo(() => joined(tail, list.rows), [tail, list.rows])
  const columns = useColumns(rows)
  return (
    <Panel query={list.query} isFollowed={isOn} height={420} flush>
      {(instead) => (
        <div className={styles.list} {...props}>
          <DataTable
            instead={instead}
            name="requests"
            label="Requests"
            columns={columns}
            rows={rows}
            rowId={({ id }) => id}
            onOpen={({ request_id }) => change({ open: request_id })}
            openId={rows.find(({ request_id }) => request_id === text("open"))?.id}
            sorting={{
              by: sortBy,
              isReversed,
              onSort: (by) => change({ sort_by: by, sort_order: by === sortBy && !isReversed ? "asc" : undefined })
            }}
            list={list}
            toolbar={
              <>
                <UsageFilterBar />
                <TailNote
                  tail={tail}
                  isOn={isOn}
                  onRelease={() => {
                    toTop()
                    release()
                  }}
                  onReload={reload}
                />
              </>
            }
            empty={<NoRequests />}
          />
        </div>
      )}
    </Panel>
  )
}

const NoRequests = () => (
  <EmptyList filters={filterFields} isOfRange={true} unmatched="No request in this range matches these filters.">
    <Empty action={<LongerRange />} command={firstCommand}>
      No request in this range. Requests appear here a moment after they have ended.
    </Empty>
  </EmptyList>
)

/** The range of the list, which begins when the page does: new requests come by the tail, and old ones do not go. */
const useTimes = () => {
  const { range } = useRange()
  const [begun, setBegun] = useState(range)
  if (begun.text !== range.text) setBegun(range)
  const { from, isRelative, to } = begun.text === range.text ? begun : range
  return { isRelative, from: from.toISOString(), to: isRelative ? undefined : to.toISOString() }
}

/** Bars of latency are as long as the ninth of ten rows: a single slow request does not flatten all others. */
const useColumns = (rows: ReadonlyArray<UsageRow>) => {
  const longest = longestOf(rows)
  const names = useMemo(
    () => new Map(rows.flatMap(({ key_id, key_name }) => (key_name === null ? [] : [[key_id, key_name] as const]))),
    [rows]
  )
  return useMemo(() => columnsOf(longest, (id) => names.get(id)), [longest, names])
}

const longestOf = (rows: ReadonlyArray<UsageRow>): number => {
  const sorted = rows.map(({ latency_ms }) => latency_ms).sort((a, b) => a - b)
  const high = sorted[Math.floor(sorted.length * 0.9)] ?? 1
  // whole powers, so that bars do not change with each new row
  return 2 ** Math.ceil(Math.log2(Math.max(1, high)))
}
