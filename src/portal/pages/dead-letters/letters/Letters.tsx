import { useNavigate } from "@tanstack/react-router"
import { useState } from "react"
import { useTextSearch } from "../../../address/search.ts"
import { useTasksList } from "../../../api/queries.ts"
import { useAllowed } from "../../../api/session.ts"
import type { DeadLetterSummary, LetterPage } from "../../../api/TaskTypes.ts"
import { LinkButton } from "../../../shared/links/LinkButton.tsx"
import { Empty } from "../../../shared/page/Empty.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { DataTable } from "../../../shared/table/DataTable.tsx"
import { EmptyList } from "../../../shared/table/EmptyList.tsx"
import { FilterBar } from "../../../shared/table/FilterBar.tsx"
import { LetterBulk } from "./LetterBulk.tsx"
import { letterColumns } from "./letterColumns.tsx"
import { isOfOpen, letterFilter, letterFilters, letterQuery } from "./letterFilter.ts"

const rowsOf = ({ items }: LetterPage): ReadonlyArray<DeadLetterSummary> => items
const nothing: ReadonlySet<string> = new Set()

/** Dead letters one by one, the newest first. */
export const Letters = () => {
  const { text } = useTextSearch()
  const navigate = useNavigate()
  const mayOperate = useAllowed("tasks:operate")
  const [selected, setSelected] = useState(nothing)
  /** The filter whose letters are all selected. Another filter, or another choice of rows, ends that. */
  const [allOf, setAllOf] = useState<string>()
  const query = letterQuery(text)
  const filterText = JSON.stringify(query)
  const select = (ids: ReadonlySet<string>) => {
    setAllOf(undefined)
    setSelected(ids)
  }
  const list = useTasksList<LetterPage, DeadLetterSummary>("/dlq/messages", { ...query, limit: 100 }, rowsOf)
  return (
    <Panel query={list.query} height={300} flush>
      {(instead) => (
        <DataTable
          instead={instead}
          name="letters"
          label="Dead letters"
          columns={letterColumns}
          rows={list.rows}
          rowId={({ dlq_id }) => dlq_id}
          onOpen={({ dlq_id }) => void navigate({ to: "/dead-letters/$dlqId", params: { dlqId: dlq_id } })}
          list={list}
          {...(mayOperate && { selected, onSelect: select })}
          toolbar={
            selected.size > 0 ? (
              <LetterBulk
                letters={list.rows.filter(({ dlq_id }) => selected.has(dlq_id))}
                matching={allOf === filterText ? letterFilter(text) : undefined}
                onAll={list.query.hasNextPage && isOfOpen(text) ? () => setAllOf(filterText) : undefined}
                onDone={() => select(nothing)}
              />
            ) : (
              <FilterBar filters={letterFilters} />
            )
          }
          empty={
            <EmptyList filters={letterFilters} unmatched="No dead letter matches. Filters compare whole values.">
              <Empty action={<LinkButton path="/tasks/board">Look at the board</LinkButton>}>
                No dead letter has a record. A message that fails for good appears here.
              </Empty>
            </EmptyList>
          }
        />
      )}
    </Panel>
  )
}
