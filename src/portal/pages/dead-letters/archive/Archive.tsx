import { Button } from "@mantine/core"
import { Link, useNavigate } from "@tanstack/react-router"
import { useState } from "react"
import { useTasksList, useTasksWrite } from "../../../api/queries.ts"
import { useAllowed } from "../../../api/session.ts"
import type { DeadLetterSummary, LetterPage } from "../../../api/TaskTypes.ts"
import { taskPath } from "../../../api/tasks.ts"
import { tellFailure, useTell } from "../../../shared/change/useTell.tsx"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { LinkButton } from "../../../shared/links/LinkButton.tsx"
import { Empty } from "../../../shared/page/Empty.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { type Column, DataTable } from "../../../shared/table/DataTable.tsx"
import { When } from "../../../shared/words/When.tsx"
import { letterName } from "../letterName.ts"
import { ArchiveBulk } from "./ArchiveBulk.tsx"

const rowsOf = ({ items }: LetterPage): ReadonlyArray<DeadLetterSummary> => items

const columns: ReadonlyArray<Column<DeadLetterSummary>> = [
  {
    id: "task",
    header: "Task",
    csv: ["dlq_id", "task_id"],
    cell: ({ dlq_id, task_id }) => (
      <Link to="/dead-letters/$dlqId" params={{ dlqId: dlq_id }}>
        <ForeignText>{letterName({ dlq_id, task_id })}</ForeignText>
      </Link>
    )
  },
  {
    id: "why",
    header: "Why",
    main: true,
    wide: true,
    csv: ({ archive }) => ({ reason_of_archive: archive?.reason }),
    cell: ({ archive }) => <ForeignText>{archive?.reason}</ForeignText>
  },
  {
    id: "by",
    header: "By",
    csv: ({ archive }) => ({ archived_by: archive?.by }),
    cell: ({ archive }) => <ForeignText>{archive?.by ?? "–"}</ForeignText>
  },
  {
    id: "at",
    header: "Archived",
    main: true,
    labelled: true,
    csv: ({ archive }) => ({ archived_at: archive?.archived_at }),
    cell: ({ archive }) => <When at={archive?.archived_at} />
  },
  {
    id: "until",
    header: "Deleted",
    main: true,
    labelled: true,
    csv: ({ archive }) => ({ until: archive?.until }),
    cell: ({ archive }) => <When at={archive?.until} />
  },
  {
    id: "exception",
    header: "Exception",
    main: true,
    csv: ["exception_type", "reason"],
    cell: ({ exception_type, reason }) => <ForeignText>{exception_type ?? reason}</ForeignText>
  },
  { id: "back", header: "Actions", main: true, cell: ({ dlq_id }) => <TakeBack dlqId={dlq_id} /> }
]

const nothing: ReadonlySet<string> = new Set()

/** What was archived, and until when it can be taken back. */
export const Archive = () => {
  const list = useTasksList<LetterPage, DeadLetterSummary>("/dlq/messages", { state: "archived", limit: 100 }, rowsOf)
  const navigate = useNavigate()
  const mayOperate = useAllowed("tasks:operate")
  const [selected, setSelected] = useState(nothing)
  return (
    <Panel query={list.query} height={240} flush>
      <DataTable
        name="archive"
        label="Archived dead letters"
        columns={columns}
        rows={list.rows}
        rowId={({ dlq_id }) => dlq_id}
        onOpen={({ dlq_id }) => void navigate({ to: "/dead-letters/$dlqId", params: { dlqId: dlq_id } })}
        list={list}
        {...(mayOperate && {
          selected,
          onSelect: setSelected,
          toolbar: (
            <ArchiveBulk letters={list.rows.filter(({ dlq_id }) => selected.has(dlq_id))} onSelect={setSelected} />
          )
        })}
        empty={
          <Empty
            action={
              <LinkButton path="/dead-letters" search={{ tab: "letters", state: "dead_lettered" }}>
                Open letters
              </LinkButton>
            }
          >
            Nothing is archived.
          </Empty>
        }
      />
    </Panel>
  )
}

export const TakeBack = ({ dlqId }: { readonly dlqId: string }) => {
  const mayOperate = useAllowed("tasks:operate")
  const tell = useTell()
  const unarchive = useTasksWrite<unknown>()
  if (!mayOperate) return null
  return (
    <Button
      variant="default"
      size="compact-sm"
      loading={unarchive.isPending}
      onClick={() =>
        unarchive.mutate(
          { path: taskPath`/dlq/messages/${dlqId}/unarchive` },
          {
            onSuccess: () => tell({ done: "The letter has the state again that it had.", audit: { type: "tasks" } }),
            onError: tellFailure
          }
        )
      }
    >
      Take back
    </Button>
  )
}
