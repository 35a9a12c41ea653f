import { Button } from "@mantine/core"
import { call } from "../../api/control.ts"
import type { ResponseOf } from "../../api/Endpoints.ts"
import { useApiList } from "../../api/queries.ts"
import { useConfirm } from "../../shared/change/useConfirm.tsx"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { type Column, DataTable } from "../../shared/table/DataTable.tsx"
import { When } from "../../shared/words/When.tsx"
import { sessionPath, sessionsPath } from "./operator.ts"

type Session = ResponseOf<"GET", typeof sessionsPath>[number]

const pageSize = 100

/** The browsers that are signed in. */
export const SessionList = () => {
  const list = useApiList(sessionsPath, { query: { limit: pageSize } })
  const { ask, dialog } = useConfirm()
  const end = ({ id, token_name, used_at }: Session) =>
    ask({
      title: `Sign out a browser of ${token_name}`,
      action: "Sign it out",
      body: (
        <p>
          It was last used <When at={used_at} />. What is not stored there yet is lost. Whoever holds the token can sign
          in again.
        </p>
      ),
      run: () => call("DELETE", sessionPath, { params: { id } }),
      done: `A browser of ${token_name} is signed out.`,
      audit: { type: "session", id }
    })
  const columns: ReadonlyArray<Column<Session>> = [
    { id: "name", header: "Of", cell: ({ token_name }) => <ForeignText>{token_name}</ForeignText> },
    {
      id: "created",
      header: "Signed in",
      main: true,
      labelled: true,
      cell: ({ created_at }) => <When at={created_at} />
    },
    { id: "used", header: "Last used", main: true, labelled: true, cell: ({ used_at }) => <When at={used_at} /> },
    { id: "expires", header: "Ends unless used", cell: ({ expires_at }) => <When at={expires_at} /> },
    {
      id: "actions",
      header: "Actions",
      main: true,
      width: 110,
      cell: (session) => (
        <Button size="compact-sm" variant="default" onClick={() => end(session)}>
          Sign out
        </Button>
      )
    }
  ]
  return (
    <Panel query={list.query} height={240} flush>
      <DataTable
        name="operator-sessions"
        label="Sessions"
        columns={columns}
        rows={list.rows}
        rowId={({ id }) => id}
        list={list}
        empty={<Empty>No browser is signed in.</Empty>}
      />
      {dialog}
    </Panel>
  )
}
