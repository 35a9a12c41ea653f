import { Alert, Button } from "@mantine/core"
import { useNavigate, useParams } from "@tanstack/react-router"
import { useTextSearch } from "../../address/search.ts"
import { call } from "../../api/control.ts"
import { useLiveRefresh } from "../../api/live.ts"
import { useApi } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { useConfirm } from "../../shared/change/useConfirm.tsx"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { LinkButton } from "../../shared/links/LinkButton.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { PageHeader } from "../../shared/page/PageHeader.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { Tabs } from "../../shared/page/Tabs.tsx"
import { UnreadPage } from "../../shared/page/UnreadPage.tsx"
import { CopyAs } from "../../shared/words/CopyAs.tsx"
import { Bench } from "./bench/Bench.tsx"
import { Coverage, CoverageSentence } from "./Coverage.tsx"
import { Executions } from "./Executions.tsx"
import { GuardrailForm } from "./GuardrailForm.tsx"
import { Overview } from "./Overview.tsx"
import { configurationOf, EnabledWord, type Guardrail } from "./words/words.tsx"

const liveTopics = ["configuration"] as const
const path = "/admin-ui/admin/guardrails/:name"

const GuardrailPage = () => {
  const { name = "" } = useParams({ strict: false })
  const { change, text } = useTextSearch()
  const found = useApi(path, { params: { name } })
  const guardrail = found.data
  useLiveRefresh(liveTopics, [path])
  if (found.error !== null && guardrail === undefined)
    return (
      <UnreadPage
        title="Guardrail"
        query={found}
        missing={
          <Empty action={<LinkButton path="/guardrails">All guardrails</LinkButton>}>
            No guardrail has the name <ForeignText>{name}</ForeignText>.
          </Empty>
        }
      />
    )
  return (
    <>
      <PageHeader
        title={name}
        lead={guardrail?.description}
        beside={guardrail !== undefined && <EnabledWord enabled={guardrail.enabled} />}
        areActionsLate
        actions={
          <>
            <CopyAs
              address={`/admin-ui/admin/guardrails/${encodeURIComponent(name)}`}
              configuration={guardrail && configurationOf(guardrail)}
            />
            {guardrail !== undefined && <Actions guardrail={guardrail} onEdit={() => change({ do: "edit" })} />}
          </>
        }
      />
      {guardrail === undefined ? (
        <Panel query={found} height={300}>
          {null}
        </Panel>
      ) : (
        <>
          {guardrail.provider_kind === "http" && !guardrail.enabled && (
            <Alert color="gray" mb="sm">
              It is disabled: no request passes it. Try it on the bench before you enable it.
            </Alert>
          )}
          <Tabs
            tabs={[
              { value: "overview", label: "Overview", content: () => <Overview guardrail={guardrail} /> },
              { value: "bench", label: "Bench", content: () => <Bench key={name} guardrail={guardrail} /> },
              { value: "coverage", label: "Coverage", content: () => <Coverage name={name} /> },
              { value: "executions", label: "Executions", content: () => <Executions name={name} /> }
            ]}
          />
          {text("do") === "edit" && (
            <GuardrailForm
              guardrail={guardrail}
              onClose={() => change({ do: undefined })}
              onSaved={() => change({ do: undefined })}
            />
          )}
        </>
      )}
    </>
  )
}

const Actions = ({ guardrail, onEdit }: { readonly guardrail: Guardrail; readonly onEdit: () => void }) => {
  const { enabled, name, provider_kind } = guardrail
  const { ask, dialog } = useConfirm()
  const navigate = useNavigate()
  const mayChange = useAllowed("guardrails:update")
  const set = (enable: boolean) => call("PATCH", path, { params: { name }, body: { enabled: enable } })
  if (!mayChange) return null
  const toggle = () =>
    ask({
      title: enabled ? `Disable ${name}` : `Enable ${name}`,
      action: enabled ? "Disable" : "Enable",
      body: (
        <>
          <CoverageSentence name={name} />
          {enabled && <p>Keys whose policy demands it are refused while it is disabled.</p>}
        </>
      ),
      run: () => set(!enabled),
      undo: () => set(enabled),
      done: `${name} is ${enabled ? "disabled" : "enabled"}.`,
      audit: { type: "guardrail", id: name }
    })
  const remove = () =>
    ask({
      title: `Delete ${name}`,
      action: "Delete",
      name,
      body: (
        <>
          <CoverageSentence name={name} />
          <p>It is removed from every policy. The record of its executions stays.</p>
        </>
      ),
      run: () => call("DELETE", path, { params: { name } }),
      done: `${name} is deleted.`,
      audit: { type: "guardrail", id: name },
      onDone: () => void navigate({ to: "/guardrails" })
    })
  return (
    <>
      <Button variant="default" onClick={toggle}>
        {enabled ? "Disable" : "Enable"}
      </Button>
      <Button variant="default" onClick={onEdit}>
        Edit
      </Button>
      {provider_kind === "http" && (
        <Button variant="default" c="red" onClick={remove}>
          Delete
        </Button>
      )}
      {dialog}
    </>
  )
}

export default GuardrailPage
