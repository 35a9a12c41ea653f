import { useRange } from "../../address/range.ts"
import { useTextSearch } from "../../address/search.ts"
import { withQuery } from "../../api/http.ts"
import { PageHeader } from "../../shared/page/PageHeader.tsx"
import { Tabs } from "../../shared/page/Tabs.tsx"
import { DetailDrawer } from "../../shared/table/DetailDrawer.tsx"
import { useUsageFilter } from "../../shared/usage/useUsageFilter.ts"
import { CopyAs } from "../../shared/words/CopyAs.tsx"
import styles from "./breakdown/Breakdown.module.css"
import { GroupDetail } from "./breakdown/GroupDetail.tsx"
import { GroupTable } from "./breakdown/GroupTable.tsx"
import { UsageChart } from "./breakdown/UsageChart.tsx"
import { UsageControls } from "./breakdown/UsageControls.tsx"
import { UsageTiles } from "./breakdown/UsageTiles.tsx"
import { useBreakdown } from "./breakdown/useBreakdown.ts"
import { breakdownRequest } from "./breakdown/useGroups.ts"
import { UnusedKeys, unusedRequest } from "./UnusedKeys.tsx"
import { SavedViews } from "./views/SavedViews.tsx"

const Breakdown = () => {
  const data = useBreakdown()
  return (
    <div className={styles.stack}>
      <UsageControls data={data} />
      <UsageTiles data={data} />
      <UsageChart data={data} />
      <GroupTable data={data} />
      <DetailDrawer title={(name) => data.list.find((row) => row.name === name)?.label ?? name}>
        {(name) => <GroupDetail name={name} />}
      </DetailDrawer>
    </div>
  )
}

/** The table of the page as a command. */
const Command = () => {
  const { range } = useRange()
  const { text } = useTextSearch()
  const breakdown = breakdownRequest(range, text, useUsageFilter())
  const { path, query } = text("tab") === "unused" ? unusedRequest(range, text("project_id")) : breakdown
  return <CopyAs address={withQuery(path, query)} />
}

/** What is used, by whom and for what, and how it changes. */
const UsagePage = () => (
  <>
    <PageHeader
      title="Usage"
      lead="What is used, by whom and for what, and how it changes."
      actions={
        <>
          <SavedViews />
          <Command />
        </>
      }
    />
    <Tabs
      tabs={[
        { value: "breakdown", label: "Breakdown", content: () => <Breakdown /> },
        { value: "unused", label: "Unused keys", content: () => <UnusedKeys /> }
      ]}
    />
  </>
)

export default UsagePage
