import { useTextSearch } from "../../address/search.ts"
import { addressOf } from "../../api/control.ts"
import { PageHeader } from "../../shared/page/PageHeader.tsx"
import { Tabs } from "../../shared/page/Tabs.tsx"
import { CopyAs } from "../../shared/words/CopyAs.tsx"
import { Current, configurationPath, currentRequest } from "./Current.tsx"
import { Drift } from "./Drift.tsx"
import { History, historyPath, historyRequest } from "./History.tsx"
import { PlanAndApply } from "./PlanAndApply.tsx"

/** Everything that operators configured, as one document: look at it, compare another one, apply that. */
const ConfigurationPage = () => {
  const { text } = useTextSearch()
  return (
    <>
      <PageHeader
        title="Configuration"
        lead="Everything that operators configured, as one document without secrets."
        beside={<Drift />}
        actions={
          <CopyAs
            address={
              text("tab") === "history"
                ? addressOf(historyPath, historyRequest)
                : addressOf(configurationPath, currentRequest(text))
            }
          />
        }
      />
      <Tabs
        tabs={[
          { value: "current", label: "Current document", content: () => <Current /> },
          { value: "plan", label: "Compare and apply", content: () => <PlanAndApply /> },
          { value: "history", label: "History", content: () => <History /> }
        ]}
      />
    </>
  )
}

export default ConfigurationPage
