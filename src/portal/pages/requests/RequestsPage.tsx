import { Button, Menu } from "@mantine/core"
import { IconDownload } from "@tabler/icons-react"
import { useRange } from "../../address/range.ts"
import { useTextSearch } from "../../address/search.ts"
import { withQuery } from "../../api/http.ts"
import { useAllowed } from "../../api/session.ts"
import { PageHeader } from "../../shared/page/PageHeader.tsx"
import { DetailDrawer } from "../../shared/table/DetailDrawer.tsx"
import { RecordExport } from "../../shared/usage/RecordExport.tsx"
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
  const mayExport = useAllowed("usage:export")
  return (
    <>
      <PageHeader
        title="Requests"
        lead="What is asked of the gateway, by whom, and what became of it."
        actions={
          <>
            {mayExport && (
              <Menu position="bottom-end">
                <Menu.Target>
                  <Button variant="default" leftSection={<IconDownload size={14} />}>
                    Export
                  </Button>
                </Menu.Target>
                <Menu.Dropdown>
                  <RecordExport
                    filters={filters}
                    from={range.from.toISOString()}
                    to={range.isRelative ? undefined : range.to.toISOString()}
                  />
                </Menu.Dropdown>
              </Menu>
            )}
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
