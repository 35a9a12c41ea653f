import { Button } from "@mantine/core"
import { Link } from "@tanstack/react-router"
import { useTextSearch } from "../../address/search.ts"
import { useLiveRefresh } from "../../api/live.ts"
import { useApiList } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { Empty } from "../../shared/page/Empty.tsx"
import { PageHeader } from "../../shared/page/PageHeader.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { DataTable } from "../../shared/table/DataTable.tsx"
import { DetailDrawer } from "../../shared/table/DetailDrawer.tsx"
import { FilterBar } from "../../shared/table/FilterBar.tsx"
import { CopyAs } from "../../shared/words/CopyAs.tsx"
import { columns, filters } from "./columns.tsx"
import { KeySummary } from "./KeySummary.tsx"

const liveTopics = ["configuration"] as const
const path = "/admin-ui/admin/keys"

/** Who may use the gateway: keys, their owners, and what they have spent. */
const KeysPage = () => {
  const { change, text } = useTextSearch()
  const mayCreate = useAllowed("keys:create")
  const query = {
    q: text("q"),
    state: stateOf(text("state")),
    tag: text("tag"),
    project_id: text("project_id"),
    near_limit: text("near_limit") === "true" ? true : undefined,
    sort_by: sortOf(text("sort_by")),
    limit: 100
  }
  const list = useApiList(path, { query })
  useLiveRefresh(liveTopics, [path])
  return (
    <>
      <PageHeader
        title="Keys"
        lead="Who may use the gateway, for what, and what they have spent."
        actions={
          <>
            <CopyAs address={path} />
            {mayCreate && (
              <Button component={Link} to="/keys">
                Create a key
              </Button>
            )}
          </>
        }
      />
      <Panel query={list.query} height={420} flush>
        <DataTable
          name="keys"
          label="Keys"
          columns={columns}
          rows={list.rows}
          rowId={({ id }) => id}
          onOpen={({ id }) => change({ open: id })}
          openId={text("open")}
          sorting={{ by: text("sort_by") ?? "created_at", onSort: (by) => change({ sort_by: by }) }}
          list={list}
          toolbar={<FilterBar filters={filters} />}
          empty={<Empty>No key matches. A key lets one application or person use the gateway.</Empty>}
        />
      </Panel>
      <DetailDrawer title={() => "Key"} page={(id) => `/keys/${id}`}>
        {(id) => <KeySummary id={id} />}
      </DetailDrawer>
    </>
  )
}

const states = ["active", "disabled", "expired", "revoked"] as const
const sorts = ["created_at", "last_used_at", "expires_at", "spend"] as const

const stateOf = (text: string | undefined) => states.find((state) => state === text)
const sortOf = (text: string | undefined) => sorts.find((sort) => sort === text)

export default KeysPage
