import { useRange } from "../../address/range.ts"
import { useTextSearch } from "../../address/search.ts"
import { withQuery } from "../../api/http.ts"
import { PageHeader } from "../../shared/page/PageHeader.tsx"
import { DetailDrawer } from "../../shared/table/DetailDrawer.tsx"
import { ExportMenu } from "../../shared/usage/ExportMenu.tsx"
import { eventsPath } from "../../shared/usage/useUsageEvents.ts"
import { useUsageFilter } from "../../shared/usage/useUsageFilter.ts"
import { CopyAs } from "../../shared/words/CopyAs.tsx"
import { RequestDetail } from "./detail/RequestDetail.tsx"
import { RateChart } from "./list/RateChart.tsx"
import { RequestHistogram } from "./list/RequestHistogram.tsx"
import styles from "./list/RequestList.module.css"
import { RequestList } from "./list/RequestList.tsx"

/** What is asked of the gateway: requests as they end, and all that were recorded. */
const RequestsPage = () => {
  const filters = useUsageFilter()
  const { range } = useRange()
  const { text } = useTextSearch()
  return (
    <>
      <PageHeader
        title="Requests"
        lead="What is asked of the gateway, by whom, and what became of it."
        actions={
          <>
            <ExportMenu
              records={{
                filters,
                from: range.from.toISOString(),
                to: range.isRelative ? undefined : range.to.toISOString()
              }}
            />
            <CopyAs
              address={withQuery(eventsPath, {
                ...filters,
                from: range.from.toISOString(),
                to: range.isRelative ? undefined : range.to.toISOString(),
                sort_by: text("sort_by"),
                sort_order: text("sort_order"),
                limit: 100
              })}
            />
          </>
        }
      />
      <div className={styles.stack}>
        <div className={styles.charts}>
          <RequestHistogram filters={filters} />
          <div className={styles.rate}>
            <RateChart />
          </div>
        </div>
        <RequestList filters={filters} />
      </div>
      <DetailDrawer title={() => "Request"} page={(id) => `/requests/${encodeURIComponent(id)}`}>
        {(id) => <RequestDetail id={id} />}
      </DetailDrawer>
    </>
  )
}

export default RequestsPage
