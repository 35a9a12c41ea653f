import { PageHeader } from "../../shared/page/PageHeader.tsx"
import { Tabs } from "../../shared/page/Tabs.tsx"
import { CopyAs } from "../../shared/words/CopyAs.tsx"
import { Current } from "./Current.tsx"
import { Drift } from "./Drift.tsx"
import { History } from "./History.tsx"
import { PlanAndApply } from "./PlanAndApply.tsx"

/** Everything that operators configured, as one document: look at it, compare another one, apply that. */
const ConfigurationPage = () => (
  <>
    <PageHeader
      title="Configuration"
      lead="Everything that operators configured, as one document without secrets."
      beside={<Drift />}
      actions={<CopyAs address="/admin-ui/admin/configuration" />}
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

export default ConfigurationPage
