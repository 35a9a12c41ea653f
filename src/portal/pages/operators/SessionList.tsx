import { Button } from "@mantine/core"
import { notifications } from "@mantine/notifications"
import type { ResponseOf } from "../../api/Endpoints.ts"
import { useApiList, useApiWrite } from "../../api/queries.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { type Column, DataTable } from "../../shared/table/DataTable.tsx"
import { When } from "../../shared/words/When.tsx"
import { sessionsPath, staleAfterTokens } from "./operator.ts"

type Session = ResponseOf<"GET", typeof sessionsPath>[number]

const pageSize = 100

/** The browsers that are signed in. */
export const SessionList = () => {
  const list = useApiList(sessionsPath, { query: { limit: pageSize } })
  const end = useApiWrite("DELETE", "/admin-ui/admin/operator-sessions/:id", staleAfterTokens)
  const columns: ReadonlyArray<Column<Session>> = [
    { id: "name", header: "Of", cell: ({ token_name }) => <ForeignText>{token_name}</ForeignText> },
    { id: "created", header: "Signed in", main: true, cell: ({ created_at }) => <When at={created_at} /> },
    { id: "used", header: "Last used", main: true, cell: ({ used_at }) => <When at={used_at} /> },
    { id: "expires", header: "Ends unless used", cell: ({ expires_at }) => <When at={expires_at} /> },
    {
      id: "actions",
      header: "Actions",
      main: true,
      width: 110,
      cell: ({ id, token_name }) => (
        <Button
          size="compact-sm"
          variant="default"
          loading={end.isPending && end.variables.params.id === id}
          onClick={() =>
            end.mutate(
              { params: { id } },
              {
                onSuccess: () => notifications.show({ message: `A browser of ${token_name} is signed out.` }),
                onError: ({ message }) => notifications.show({ message, color: "red" })
              }
            )
          }
        >
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
    </Panel>
  )
}
