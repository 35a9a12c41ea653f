import { Link, useNavigate } from "@tanstack/react-router"
import { useTasksList } from "../../../api/queries.ts"
import type { CancellationJob, CancellationPage } from "../../../api/TaskTypes.ts"
import { tasksPath } from "../../../api/tasks.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { LinkButton } from "../../../shared/links/LinkButton.tsx"
import { Empty } from "../../../shared/page/Empty.tsx"
import { PageHeader } from "../../../shared/page/PageHeader.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { type Column, DataTable } from "../../../shared/table/DataTable.tsx"
import { Count } from "../../../shared/words/Amounts.tsx"
import { CopyAs } from "../../../shared/words/CopyAs.tsx"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import { When } from "../../../shared/words/When.tsx"
import { cancellationsPath, meaningOf, selectionText } from "./cancellation.ts"

const rowsOf = ({ cancellations }: CancellationPage): ReadonlyArray<CancellationJob> => cancellations
const refreshMs = 5_000

const columns: ReadonlyArray<Column<CancellationJob>> = [
  {
    id: "what",
    header: "What",
    csv: ["cancellation_id", "query"],
    cell: (job) => (
      <Link to="/tasks/cancellations/$id" params={{ id: job.cancellation_id }}>
        <ForeignText>{selectionText(job)}</ForeignText>
      </Link>
    )
  },
  {
    id: "state",
    header: "State",
    main: true,
    csv: ["state"],
    cell: (job) => <StatusWord meaning={meaningOf(job)}>{job.state}</StatusWord>
  },
  { id: "total", header: "Tasks", numeric: true, csv: ["total"], cell: ({ total }) => <Count of={total} /> },
  {
    id: "cancelled",
    header: "Cancelled",
    numeric: true,
    main: true,
    csv: ["cancelled"],
    cell: ({ cancelled }) => <Count of={cancelled} />
  },
  {
    id: "requested",
    header: "No answer",
    numeric: true,
    main: true,
    csv: ["requested"],
    cell: ({ requested }) => <Count of={requested} />
  },
  { id: "ended", header: "Had ended", numeric: true, csv: ["ended"], cell: ({ ended }) => <Count of={ended} /> },
  {
    id: "withdrawn",
    header: "Withdrawn",
    numeric: true,
    hidden: true,
    csv: ["withdrawn"],
    cell: ({ withdrawn }) => <Count of={withdrawn} />
  },
  {
    id: "failed",
    header: "Failed",
    numeric: true,
    main: true,
    csv: ["failed"],
    cell: ({ failed }) => <Count of={failed} />
  },
  {
    id: "reason",
    header: "Reason",
    main: true,
    wide: true,
    csv: ["reason"],
    cell: ({ reason }) => <ForeignText>{reason}</ForeignText>
  },
  {
    id: "by",
    header: "By",
    hidden: true,
    csv: ["by"],
    cell: ({ by }) => (by === null ? "–" : <ForeignText>{by}</ForeignText>)
  },
  {
    id: "begun",
    header: "Begun",
    main: true,
    labelled: true,
    csv: ["started_at"],
    cell: ({ started_at }) => <When at={started_at} />
  },
  {
    id: "end",
    header: "Ended",
    hidden: true,
    csv: ["ended_at"],
    cell: ({ ended_at }) => <When at={ended_at} absent="not yet" />
  }
]

/** The cancellations of many tasks, the newest first. */
const CancellationsPage = () => {
  const list = useTasksList<CancellationPage, CancellationJob>(cancellationsPath, { limit: 50 }, rowsOf, { refreshMs })
  const navigate = useNavigate()
  return (
    <>
      <PageHeader
        title="Cancellations"
        lead="Many tasks that were cancelled at once. They go on without this page."
        actions={<CopyAs address={tasksPath + cancellationsPath} />}
      />
      <Panel query={list.query} height={240} flush>
        <DataTable
          name="cancellations"
          label="Cancellations"
          columns={columns}
          rows={list.rows}
          rowId={({ cancellation_id }) => cancellation_id}
          onOpen={({ cancellation_id: id }) => void navigate({ to: "/tasks/cancellations/$id", params: { id } })}
          list={list}
          empty={
            <Empty action={<LinkButton path="/tasks">Tasks</LinkButton>}>
              Nobody has cancelled many tasks at once yet. Select some in the list of tasks.
            </Empty>
          }
        />
      </Panel>
    </>
  )
}

export default CancellationsPage
