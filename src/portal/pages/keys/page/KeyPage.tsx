import { useParams } from "@tanstack/react-router"
import { addressOf } from "../../../api/control.ts"
import { useLiveRefresh } from "../../../api/live.ts"
import { useApi } from "../../../api/queries.ts"
import { useAllowed } from "../../../api/session.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { LinkButton } from "../../../shared/links/LinkButton.tsx"
import { Empty } from "../../../shared/page/Empty.tsx"
import { PageHeader } from "../../../shared/page/PageHeader.tsx"
import { Tabs } from "../../../shared/page/Tabs.tsx"
import { UnreadPage } from "../../../shared/page/UnreadPage.tsx"
import { CopyAs } from "../../../shared/words/CopyAs.tsx"
import { CopyButton } from "../../../shared/words/CopyButton.tsx"
import { KeyActions } from "../actions/KeyActions.tsx"
import { KeyState } from "../words/KeyWords.tsx"
import { configurationOf, keyName, keyPath } from "../words/key.ts"
import { KeyChanges } from "./KeyChanges.tsx"
import { KeyGuardrails } from "./KeyGuardrails.tsx"
import { KeyOverview } from "./KeyOverview.tsx"
import { KeyPolicy } from "./KeyPolicy.tsx"
import { KeyRequests } from "./KeyRequests.tsx"
import { KeyServices } from "./KeyServices.tsx"

const liveTopics = ["configuration"] as const

/** One key: what it has used, what holds for it, and who changed it. */
const KeyPage = () => {
  const { id = "" } = useParams({ strict: false })
  const query = useApi(keyPath, { params: { id } })
  const maySeeUsage = useAllowed("usage:read")
  const maySeeAudit = useAllowed("audit:read")
  useLiveRefresh(liveTopics, [keyPath, "/admin-ui/admin/policy/effective"])
  const key = query.data
  if (key === undefined || key.id !== id)
    return (
      <UnreadPage
        title="Key"
        query={query}
        missing={
          <Empty action={<LinkButton path="/keys">All keys</LinkButton>}>
            No key has the id <ForeignText>{id}</ForeignText>. Find it by its name, its owner or its prefix.
          </Empty>
        }
      />
    )
  return (
    <>
      <PageHeader
        title={keyName(key)}
        lead={key.description}
        beside={
          <>
            <KeyState of={key} />
            <code>{key.key_prefix}</code>
            <CopyButton text={key.id} label="Copy the id" />
          </>
        }
        areActionsLate
        actions={
          <>
            <CopyAs address={addressOf(keyPath, { params: { id } })} configuration={configurationOf(key)} />
            <KeyActions of={key} />
          </>
        }
      />
      <Tabs
        tabs={[
          { value: "overview", label: "Overview", content: () => <KeyOverview of={key} /> },
          { value: "policy", label: "Policy", content: () => <KeyPolicy of={key} /> },
          { value: "guardrails", label: "Guardrails", content: () => <KeyGuardrails of={key} /> },
          { value: "services", label: "Services", content: () => <KeyServices of={key} /> },
          ...(maySeeUsage ? [{ value: "requests", label: "Requests", content: () => <KeyRequests of={key} /> }] : []),
          ...(maySeeAudit ? [{ value: "changes", label: "Changes", content: () => <KeyChanges id={key.id} /> }] : [])
        ]}
      />
    </>
  )
}

export default KeyPage
