import { Button } from "@mantine/core"
import { Link } from "@tanstack/react-router"
import { useState } from "react"
import { useTextSearch } from "../../address/search.ts"
import { addressOf } from "../../api/control.ts"
import { useLiveRefresh } from "../../api/live.ts"
import { useApiList } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { SpendUntil } from "../../shared/keys/SpendUntil.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { PageHeader } from "../../shared/page/PageHeader.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { DataTable } from "../../shared/table/DataTable.tsx"
import { DetailDrawer } from "../../shared/table/DetailDrawer.tsx"
import { EmptyList } from "../../shared/table/EmptyList.tsx"
import { FilterBar } from "../../shared/table/FilterBar.tsx"
import { CopyAs, curlOf } from "../../shared/words/CopyAs.tsx"
import { BulkBar } from "./bulk/BulkBar.tsx"
import type { Matching } from "./bulk/selection.ts"
import { columns } from "./columns.tsx"
import { keyFilters, useKeyQuery } from "./filters.ts"
import { KeySummary } from "./KeySummary.tsx"
import { keyPath, keysPath } from "./words/key.ts"

const liveTopics = ["configuration"] as const
const pageSize = 100
const nobody: ReadonlySet<string> = new Set()

/** Who may use the gateway: keys, their owners, and what they have spent. */
const KeysPage = () => {
  const { change, text } = useTextSearch()
  const mayChange = useAllowed("keys:disable", "keys:rotate", "policies:update")
  const [selected, setSelected] = useState(nobody)
  const { query, sorting } = useKeyQuery()
  const [matching, setMatching] = useState<{ readonly of: string; readonly selection: Matching }>()
  const queryText = JSON.stringify(query)
  const request = { query: { ...query, limit: pageSize } }
  const list = useApiList(keysPath, request)
  /** Picking or leaving out a single key ends the selection of all that match. */
  const select = (ids: ReadonlySet<string>) => {
    setMatching(undefined)
    setSelected(ids)
  }
  useLiveRefresh(liveTopics, [keysPath, keyPath])
  return (
    <>
      <PageHeader
        title="Keys"
        lead={
          <>
            Who may use the gateway, for what, and what they have spent
            {list.rows[0] !== undefined && (
              <>
                : <SpendUntil of={list.rows[0]} />
              </>
            )}
            .
          </>
        }
        actions={
          <>
            <CopyAs address={addressOf("/admin-ui/admin/keys", request)} />
            <Button component={Link} to="/keys/changes" variant="default">
              Bulk changes
            </Button>
            <CreateButton />
          </>
        }
      />
      <Panel query={list.query} height={420} flush>
        {(instead) => (
          <DataTable
            instead={instead}
            name="keys"
            label="Keys"
            columns={columns}
            rows={list.rows}
            rowId={({ id }) => id}
            onOpen={({ id }) => change({ open: id })}
            openId={text("open")}
            sorting={sorting}
            list={list}
            {...(mayChange && { selected, onSelect: select })}
            toolbar={
              selected.size > 0 ? (
                <BulkBar
                  selection={
                    matching?.of === queryText
                      ? matching.selection
                      : { kind: "picked", keys: list.rows.filter(({ id }) => selected.has(id)) }
                  }
                  query={query}
                  hasMore={list.query.hasNextPage}
                  onMatching={(selection) => setMatching({ of: queryText, selection })}
                  onClear={() => select(nobody)}
                />
              ) : (
                <FilterBar filters={keyFilters} />
              )
            }
            empty={
              <EmptyList filters={keyFilters} unmatched="No key matches these filters.">
                <NoKeys />
              </EmptyList>
            }
          />
        )}
      </Panel>
      <DetailDrawer title={() => "Key"} page={(id) => `/keys/${id}`}>
        {(id) => <KeySummary id={id} />}
      </DetailDrawer>
    </>
  )
}

const CreateButton = () => {
  const mayCreate = useAllowed("keys:create")
  if (!mayCreate) return null
  return (
    <Button component={Link} to="/keys/new">
      Create a key
    </Button>
  )
}

const NoKeys = () => {
  const mayCreate = useAllowed("keys:create")
  return (
    <Empty
      action={<CreateButton />}
      command={
        mayCreate &&
        curlOf({ method: "POST", address: keysPath, body: { name: "ada, laptop", owner_type: "individual" } })
      }
    >
      There is no key yet. A key lets one application or person use the gateway.
    </Empty>
  )
}

export default KeysPage
