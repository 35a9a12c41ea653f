import { Link, useNavigate } from "@tanstack/react-router"
import { addressOf } from "../../../api/control.ts"
import { useApiList } from "../../../api/queries.ts"
import { useAllowed } from "../../../api/session.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { LinkButton } from "../../../shared/links/LinkButton.tsx"
import { Empty } from "../../../shared/page/Empty.tsx"
import { PageHeader } from "../../../shared/page/PageHeader.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { type Column, DataTable } from "../../../shared/table/DataTable.tsx"
import { Count } from "../../../shared/words/Amounts.tsx"
import { CopyAs, curlOf } from "../../../shared/words/CopyAs.tsx"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import { When } from "../../../shared/words/When.tsx"
import { type BulkChange, changesPath, meaningOf, sentenceOf } from "./bulkChange.tsx"

const refreshMs = 5_000

const columns: ReadonlyArray<Column<BulkChange>> = [
  {
    id: "what",
    header: "What",
    csv: (change) => ({ id: change.id, change: sentenceOf(change) }),
    cell: (change) => (
      <Link to="/keys/changes/$id" params={{ id: change.id }}>
        <ForeignText>{sentenceOf(change)}</ForeignText>
      </Link>
    )
  },
  {
    id: "state",
    header: "State",
    main: true,
    csv: ["state"],
    cell: (change) => <StatusWord meaning={meaningOf(change)}>{change.state}</StatusWord>
  },
  {
    id: "changed",
    header: "Changed",
    numeric: true,
    main: true,
    csv: ({ keys }) => ({ changed: keys.changed }),
    cell: ({ keys }) => <Count of={keys.changed} />
  },
  {
    id: "unchanged",
    header: "Unchanged",
    numeric: true,
    csv: ({ keys }) => ({ unchanged: keys.unchanged }),
    cell: ({ keys }) => <Count of={keys.unchanged} />
  },
  {
    id: "failed",
    header: "Failed",
    numeric: true,
    main: true,
    csv: ({ keys }) => ({ failed: keys.failed }),
    cell: ({ keys }) => <Count of={keys.failed} />
  },
  {
    id: "waiting",
    header: "Waiting",
    numeric: true,
    csv: ({ keys }) => ({ waiting: keys.waiting }),
    cell: ({ keys }) => <Count of={keys.waiting} />
  },
  {
    id: "begun",
    header: "Begun",
    main: true,
    labelled: true,
    csv: ["created_at"],
    cell: ({ created_at }) => <When at={created_at} />
  },
  {
    id: "ended",
    header: "Ended",
    hidden: true,
    csv: ["ended_at"],
    cell: ({ ended_at }) => <When at={ended_at} absent="not yet" />
  }
]

/** The newest first. */
const BulkChangesPage = () => {
  const list = useApiList(changesPath, {}, { refreshMs })
  const navigate = useNavigate()
  const mayTag = useAllowed("policies:update")
  return (
    <>
      <PageHeader
        title="Bulk key changes"
        lead="They run in the background, and are kept for 30 days."
        actions={<CopyAs address={addressOf(changesPath, {})} />}
      />
      <Panel query={list.query} height={240} flush>
        <DataTable
          name="bulk-key-changes"
          label="Bulk key changes"
          columns={columns}
          rows={list.rows}
          rowId={({ id }) => id}
          onOpen={({ id }) => void navigate({ to: "/keys/changes/$id", params: { id } })}
          list={list}
          empty={
            <Empty
              action={<LinkButton path="/keys">Keys</LinkButton>}
              command={
                mayTag &&
                curlOf({
                  method: "POST",
                  address: changesPath,
                  body: { action: "tag", filter: { q: "laptop" }, add_tags: ["to replace"] }
                })
              }
            >
              Nobody has changed many keys at once yet. Select some in the list of keys.
            </Empty>
          }
        />
      </Panel>
    </>
  )
}

export default BulkChangesPage
