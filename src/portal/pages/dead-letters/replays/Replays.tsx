import { Link, useNavigate } from "@tanstack/react-router"
import { useTasksList } from "../../../api/queries.ts"
import { useAllowed } from "../../../api/session.ts"
import type { ReplayJob, ReplayPage } from "../../../api/TaskTypes.ts"
import { tasksPath } from "../../../api/tasks.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { LinkButton } from "../../../shared/links/LinkButton.tsx"
import { Empty } from "../../../shared/page/Empty.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { type Column, DataTable } from "../../../shared/table/DataTable.tsx"
import { Count } from "../../../shared/words/Amounts.tsx"
import { curlOf } from "../../../shared/words/CopyAs.tsx"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import { When } from "../../../shared/words/When.tsx"
import { meaningOfJob, provedOf, selectionText } from "./jobWords.ts"

const rowsOf = ({ replays }: ReplayPage): ReadonlyArray<ReplayJob> => replays
const refreshMs = 5_000

const columns: ReadonlyArray<Column<ReplayJob>> = [
  {
    id: "id",
    header: "Replay",
    csv: ["replay_id"],
    cell: ({ replay_id }) => (
      <Link to="/dead-letters/replays/$replayId" params={{ replayId: replay_id }}>
        {replay_id.slice(0, 8)}
      </Link>
    )
  },
  {
    id: "state",
    header: "State",
    main: true,
    csv: ["state"],
    cell: (job) => <StatusWord meaning={meaningOfJob(job)}>{job.state}</StatusWord>
  },
  {
    id: "what",
    header: "What",
    main: true,
    wide: true,
    csv: ["filter"],
    cell: (job) => <ForeignText>{selectionText(job)}</ForeignText>
  },
  { id: "total", header: "Letters", numeric: true, csv: ["total"], cell: ({ total }) => <Count of={total} /> },
  {
    id: "replayed",
    header: "Published",
    numeric: true,
    main: true,
    csv: ["replayed"],
    cell: ({ replayed }) => <Count of={replayed} />
  },
  {
    id: "handled",
    header: "Handled",
    numeric: true,
    main: true,
    csv: (job) => ({ handled: provedOf(job)?.handled }),
    cell: (job) => <Count of={provedOf(job)?.handled} />
  },
  {
    id: "failed",
    header: "Failed again",
    numeric: true,
    main: true,
    csv: (job) => ({ failed_again: provedOf(job)?.failed_again }),
    cell: (job) => <Count of={provedOf(job)?.failed_again} />
  },
  {
    id: "started",
    header: "Started",
    main: true,
    labelled: true,
    csv: ["started_at"],
    cell: ({ started_at }) => <When at={started_at} />
  },
  {
    id: "updated",
    header: "Latest",
    hidden: true,
    csv: ["updated_at"],
    cell: ({ updated_at }) => <When at={updated_at} />
  }
]

/** The replays of many letters, the newest first. */
export const Replays = () => {
  const list = useTasksList<ReplayPage, ReplayJob>("/dlq/replays", { limit: 50 }, rowsOf, { refreshMs })
  const navigate = useNavigate()
  const mayOperate = useAllowed("tasks:operate")
  return (
    <Panel query={list.query} height={240} flush>
      <DataTable
        name="replays"
        label="Replays"
        columns={columns}
        rows={list.rows}
        rowId={({ replay_id }) => replay_id}
        onOpen={({ replay_id }) =>
          void navigate({ to: "/dead-letters/replays/$replayId", params: { replayId: replay_id } })
        }
        list={list}
        empty={
          <Empty
            action={<LinkButton path="/dead-letters">Groups</LinkButton>}
            command={
              mayOperate &&
              curlOf({
                method: "POST",
                address: `${tasksPath}/dlq/replays`,
                body: { filter: { queue_name: "mails.dlq" }, plan: { steps: [1, 10, 100] } }
              })
            }
          >
            No group was replayed in steps yet: open a group and replay it. A single replay is not listed here, but on
            the page of its letter and of its task.
          </Empty>
        }
      />
    </Panel>
  )
}
