import { Button } from "@mantine/core"
import { useNavigate } from "@tanstack/react-router"
import { useRange } from "../../address/range.ts"
import { useTextSearch } from "../../address/search.ts"
import { withQuery } from "../../api/http.ts"
import { useLiveRefresh } from "../../api/live.ts"
import { useApi } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { Empty } from "../../shared/page/Empty.tsx"
import { PageHeader } from "../../shared/page/PageHeader.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { Tabs } from "../../shared/page/Tabs.tsx"
import { DataTable } from "../../shared/table/DataTable.tsx"
import { CopyAs, curlOf } from "../../shared/words/CopyAs.tsx"
import { columnsOf, rowsOf } from "./columns.tsx"
import { Executions, executionsPath, useExecutionsQuery } from "./Executions.tsx"
import { GuardrailForm } from "./GuardrailForm.tsx"

const liveTopics = ["configuration"] as const
const path = "/admin-ui/admin/guardrails"

/** What checks requests and responses, for whom, and what it did. */
const GuardrailsPage = () => {
  const { change, text } = useTextSearch()
  const navigate = useNavigate()
  const mayChange = useAllowed("guardrails:update")
  const executions = useExecutionsQuery(undefined)
  return (
    <>
      <PageHeader
        title="Guardrails"
        lead="They read requests and responses, and let them pass, change them, or stop them."
        actions={
          <>
            {text("tab") === "executions" ? (
              <CopyAs address={withQuery(executionsPath, executions)} />
            ) : (
              <CopyAs address={path} sections={["guardrails"]} />
            )}
            {mayChange && <Button onClick={() => change({ do: "create" })}>Add a guardrail</Button>}
          </>
        }
      />
      <Tabs
        tabs={[
          { value: "catalogue", label: "Catalogue", content: () => <Catalogue /> },
          { value: "executions", label: "Executions", content: () => <Executions /> }
        ]}
      />
      {text("do") === "create" && mayChange && (
        <GuardrailForm
          onClose={() => change({ do: undefined })}
          onSaved={(name) => void navigate({ to: "/guardrails/$name", params: { name }, search: { tab: "bench" } })}
        />
      )}
    </>
  )
}

/** The guardrails, and what they did in the range. */
const Catalogue = () => {
  const { range } = useRange()
  const { change } = useTextSearch()
  const mayChange = useAllowed("guardrails:update")
  const navigate = useNavigate()
  const list = useApi(path, {})
  const summary = useApi(`${path}/summary`, {
    query: { from: range.from.toISOString(), to: range.to.toISOString() }
  })
  useLiveRefresh(liveTopics, [path])
  const rows = rowsOf(list.data?.guardrails ?? [], summary.data?.summary)
  return (
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
  )
}

export default GuardrailsPage
