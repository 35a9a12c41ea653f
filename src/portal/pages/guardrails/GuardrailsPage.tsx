import { Button } from "@mantine/core"
import { useNavigate } from "@tanstack/react-router"
import { useRange } from "../../address/range.ts"
import { useTextSearch } from "../../address/search.ts"
import { useLiveRefresh } from "../../api/live.ts"
import { useApi } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { Empty } from "../../shared/page/Empty.tsx"
import { PageHeader } from "../../shared/page/PageHeader.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { DataTable } from "../../shared/table/DataTable.tsx"
import { CopyAs, curlOf } from "../../shared/words/CopyAs.tsx"
import { columnsOf, rowsOf } from "./columns.tsx"
import { GuardrailForm } from "./GuardrailForm.tsx"

const liveTopics = ["configuration"] as const
const path = "/admin-ui/admin/guardrails"

/** What checks requests and responses, for whom, and what it did. */
const GuardrailsPage = () => {
  const { change, text } = useTextSearch()
  const { range } = useRange()
  const navigate = useNavigate()
  const mayChange = useAllowed("guardrails:update")
  const list = useApi(path, {})
  const summary = useApi(`${path}/summary`, {
    query: { from: range.from.toISOString(), to: range.to.toISOString() }
  })
  useLiveRefresh(liveTopics, [path])
  const rows = rowsOf(list.data?.guardrails ?? [], summary.data?.summary)
  return (
    <>
      <PageHeader
        title="Guardrails"
        lead="They read requests and responses, and let them pass, change them, or stop them."
        actions={
          <>
            <CopyAs address={path} sections={["guardrails"]} />
            {mayChange && <Button onClick={() => change({ do: "create" })}>Add a guardrail</Button>}
          </>
        }
      />
      <Panel query={list} height={260} flush>
        <DataTable
          name="guardrails"
          label="Guardrails"
          columns={columnsOf(summary.error !== null)}
          rows={rows}
          rowId={({ name }) => name}
          onOpen={({ name }) => void navigate({ to: "/guardrails/$name", params: { name } })}
          empty={
            <Empty
              action={mayChange && <Button onClick={() => change({ do: "create" })}>Add a guardrail</Button>}
              command={
                mayChange &&
                curlOf({
                  method: "POST",
                  address: path,
                  body: {
                    name: "house-rules",
                    endpoint_url: "https://guard.example.com/check",
                    failure_policy: "fail_closed",
                    modes: ["pre_call"]
                  }
                })
              }
            >
              There is no guardrail.
            </Empty>
          }
        />
      </Panel>
      {text("do") === "create" && mayChange && (
        <GuardrailForm
          onClose={() => change({ do: undefined })}
          onSaved={(name) => void navigate({ to: "/guardrails/$name", params: { name }, search: { tab: "bench" } })}
        />
      )}
    </>
  )
}

export default GuardrailsPage
