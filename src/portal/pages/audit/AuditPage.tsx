import { Button } from "@mantine/core"
import { IconShieldCheck } from "@tabler/icons-react"
import { useRange } from "../../address/range.ts"
import { useTextSearch } from "../../address/search.ts"
import { addressOf } from "../../api/control.ts"
import { useLiveRefresh } from "../../api/live.ts"
import { useApi, useApiList } from "../../api/queries.ts"
import { Empty } from "../../shared/page/Empty.tsx"
import { PageHeader } from "../../shared/page/PageHeader.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { DataTable } from "../../shared/table/DataTable.tsx"
import { DetailDrawer } from "../../shared/table/DetailDrawer.tsx"
import { EmptyList } from "../../shared/table/EmptyList.tsx"
import { FilterBar } from "../../shared/table/FilterBar.tsx"
import { CopyAs, curlOf } from "../../shared/words/CopyAs.tsx"
import { AuditEventView } from "./AuditEventView.tsx"
import { columns, filtersOf } from "./columns.tsx"
import { ExportButton } from "./ExportButton.tsx"
import { VerifyDialog } from "./VerifyDialog.tsx"

const liveTopics = ["configuration"] as const
const path = "/admin-ui/admin/audit-events"

/** Who changed what, and whether the log is as it was written. */
const AuditPage = () => {
  const { change, text } = useTextSearch()
  const { range } = useRange()
  const isWhole = text("span") === "all"
  const query = {
    ...(!isWhole && { from: range.from.toISOString(), ...(!range.isRelative && { to: range.to.toISOString() }) }),
    action: text("action"),
    target_type: text("target_type"),
    target_id: text("target_id"),
    actor_token_id: text("actor_token_id")
  }
  const list = useApiList(path, { query: { ...query, limit: 100 } })
  const kinds = useApi(`${path}/actions`, {})
  const filters = filtersOf(kinds.data ?? [], text("target_type"))
  useLiveRefresh(liveTopics, [path])
  return (
    <>
      <PageHeader
        title="Audit"
        lead="Every change that somebody made here, in a chain that shows whether one of them was altered."
        actions={
          <>
            <CopyAs address={addressOf<"GET", typeof path>(path, { query })} />
            <ExportButton query={query} />
            <Button leftSection={<IconShieldCheck size={14} />} onClick={() => change({ do: "verify" })}>
              Verify the chain
            </Button>
          </>
        }
      />
      <Panel query={list.query} height={420} flush>
        {(instead) => (
          <DataTable
            instead={instead}
            name="audit"
            label="Audit events"
            columns={columns}
            rows={list.rows}
            rowId={({ sequence }) => String(sequence)}
            onOpen={({ sequence }) => change({ open: String(sequence) })}
            openId={text("open")}
            list={list}
            toolbar={<FilterBar filters={filters} />}
            empty={
              isWhole ? (
                <EmptyList
                  filters={filters.filter(({ name }) => name !== "span")}
                  unmatched="No event of the log matches these filters."
                >
                  <Empty>The log has no event yet. Every change by an operator makes one.</Empty>
                </EmptyList>
              ) : (
                <Empty
                  action={
                    <Button variant="default" onClick={() => change({ span: "all" })}>
                      Look at the whole log
                    </Button>
                  }
                  command={curlOf({ address: addressOf<"GET", typeof path>(path, { query }) })}
                >
                  No event matches in this range. Every change by an operator makes one.
                </Empty>
              )
            }
          />
        )}
      </Panel>
      <DetailDrawer title={(sequence) => `Event ${sequence}`}>
        {(sequence) => <AuditEventView sequence={sequence} />}
      </DetailDrawer>
      {text("do") === "verify" && <VerifyDialog onClose={() => change({ do: undefined })} />}
    </>
  )
}

export default AuditPage
