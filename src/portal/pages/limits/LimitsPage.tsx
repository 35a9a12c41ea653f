import { useAllowed } from "../../api/session.ts"
import { LinkButton } from "../../shared/links/LinkButton.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { EmptyList } from "../../shared/table/EmptyList.tsx"
import { HeatMap } from "./HeatMap.tsx"
import { LimitsFrame, NameFilter } from "./LimitsFrame.tsx"
import { LookedNote } from "./LookedNote.tsx"
import { NextToEnd } from "./NextToEnd.tsx"
import styles from "./state/Limits.module.css"
import { useLimitPages } from "./useLimitPages.ts"

/** Who is about to hit a limit. */
const LimitsPage = () => {
  const { address, limits, looked, query } = useLimitPages()
  return (
    <LimitsFrame address={address}>
      <div className={styles.stack}>
        <Panel
          title="Keys and layers"
          note="percent of each limit that is used or reserved"
          query={query}
          height={360}
          flush
          actions={<NameFilter />}
          {...(limits.length === 0 && !query.isPending && { empty: <NoLimits what="limit" /> })}
        >
          <HeatMap limits={limits} />
          <LookedNote
            looked={looked}
            hasMore={query.hasNextPage}
            isBusy={query.isFetchingNextPage}
            onMore={() => void query.fetchNextPage()}
          />
        </Panel>
        <NextToEnd limits={limits} query={query} />
      </div>
    </LimitsFrame>
  )
}

const command = `curl -s -X PATCH "${window.location.origin}/admin-ui/admin/keys/$KEY_ID" \\
  -H "authorization: Bearer $OPERATOR" \\
  -H 'content-type: application/json' -d '{"policy":{"rpm_limit":60,"daily_budget_usd":3}}'`

const filters = [{ name: "q" }, { name: "scope" }, { name: "id" }]

/** Shown by the views of limits that have no row. `what`: limits or budgets. */
export const NoLimits = ({ what }: { readonly what: "limit" | "budget" }) => {
  const mayChange = useAllowed("policies:update")
  return (
    <EmptyList filters={filters} unmatched={`No ${what} that was read matches.`}>
      <Empty action={mayChange && <LinkButton path="/policies">Policies</LinkButton>} command={mayChange && command}>
        No key that was used in this month has a {what}. Limits and budgets are part of the policy of a key or of a
        layer.
      </Empty>
    </EmptyList>
  )
}

export default LimitsPage
