import { useMemo } from "react"
import { useTextSearch } from "../../address/search.ts"
import { Meter } from "../../shared/charts/Meter.tsx"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { type Column, DataTable } from "../../shared/table/DataTable.tsx"
import { amountText } from "../../shared/words/amountText.ts"
import { When } from "../../shared/words/When.tsx"
import { LimitsFrame, NameFilter } from "./LimitsFrame.tsx"
import { NoLimits } from "./LimitsPage.tsx"
import { LookedNote } from "./LookedNote.tsx"
import { type LimitState, limitId, ownerOf } from "./state/limitStates.ts"
import { useLimitPages } from "./useLimitPages.ts"

const columns: ReadonlyArray<Column<LimitState>> = [
  {
    id: "name",
    header: "Budget of",
    short: true,
    cell: ({ scope_name }) => <ForeignText title={scope_name}>{scope_name}</ForeignText>
  },
  { id: "scope", header: "Scope", cell: ({ scope, within }) => (within === null ? scope : `${scope}, for ${within}`) },
  {
    id: "owners",
    header: "Owners",
    short: true,
    cell: ({ owner_email, project_name, team_id }) => {
      const owners = [owner_email, project_name, team_id].filter((owner) => owner !== null)
      return owners.length === 0 ? "–" : <ForeignText title={owners.join(", ")}>{owners.join(", ")}</ForeignText>
    }
  },
  { id: "window", header: "Window", main: true, cell: ({ window }) => window },
  {
    id: "spent",
    header: "Spent",
    main: true,
    width: 240,
    cell: ({ limit, meter, reserved, unit, used }) =>
      used === null ? (
        `unknown, of ${amountText(limit, unit)}`
      ) : (
        <Meter
          label={meter}
          used={used}
          reserved={reserved ?? 0}
          limit={limit}
          format={(amount) => amountText(amount, unit)}
        />
      )
  },
  {
    id: "reserved",
    header: "Reserved",
    numeric: true,
    cell: ({ reserved, unit }) => (reserved === null ? "–" : amountText(reserved, unit))
  },
  {
    id: "remaining",
    header: "Left",
    numeric: true,
    main: true,
    cell: ({ remaining, unit }) => (remaining === null ? "–" : amountText(remaining, unit))
  },
  {
    id: "forecast",
    header: "Used up, at this rate",
    main: true,
    labelled: true,
    wide: true,
    cell: ({ forecast, remaining, resets_at }) =>
      remaining === null ? (
        "unknown"
      ) : remaining <= 0 ? (
        <strong>used up</strong>
      ) : forecast === null || Date.parse(forecast) >= Date.parse(resets_at) ? (
        "not before its reset"
      ) : (
        <When at={forecast} />
      )
  },
  { id: "resets", header: "Resets", main: true, labelled: true, cell: ({ resets_at }) => <When at={resets_at} /> },
  { id: "raised", header: "End of its raise", cell: ({ raised_until }) => <When at={raised_until} /> }
]

/** All budgets, those that are nearest to their end first. */
const BudgetsPage = () => {
  const { change, text } = useTextSearch()
  const { address, limits, looked, query } = useLimitPages()
  const budgets = useMemo(() => limits.filter(({ unit }) => unit === "usd"), [limits])
  const openLimit = budgets.find((budget) => ownerOf(budget).id === text("open"))
  return (
    <LimitsFrame address={address}>
      <Panel query={query} height={360} flush>
        {(instead) => (
          <>
            <DataTable
              instead={instead}
              name="budgets"
              label="Budgets"
              columns={columns}
              rows={budgets}
              rowId={limitId}
              onOpen={(budget) => change({ open: ownerOf(budget).id })}
              openId={openLimit && limitId(openLimit)}
              toolbar={<NameFilter />}
              empty={<NoLimits what="budget" />}
            />
            {instead === undefined && (
              <LookedNote
                looked={looked}
                hasMore={query.hasNextPage}
                isBusy={query.isFetchingNextPage}
                onMore={() => void query.fetchNextPage()}
              />
            )}
          </>
        )}
      </Panel>
    </LimitsFrame>
  )
}

export default BudgetsPage
