import { useRange } from "../../../address/range.ts"
import { useTextSearch } from "../../../address/search.ts"
import { useApi } from "../../../api/queries.ts"
import { LinkButton } from "../../../shared/links/LinkButton.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { unlabelledOf } from "../../../shared/usage/unlabelled.ts"
import { useUsageFilter } from "../../../shared/usage/useUsageFilter.ts"
import { Count, Money } from "../../../shared/words/Amounts.tsx"
import { Facts } from "../../../shared/words/Facts.tsx"
import { countText, durationText, percentText } from "../../../shared/words/format.ts"
import styles from "./Breakdown.module.css"
import { filtersOf, groupOf } from "./groups.ts"
import type { Summary } from "./measures.ts"
import { splitOf } from "./parts.ts"

/** One group of the table: everything that is summed up of it, its parts by the chosen split, and ways to look further. */
export const GroupDetail = ({ name }: { readonly name: string }) => {
  const { text } = useTextSearch()
  const { range } = useRange()
  const filters = useUsageFilter()
  const group = groupOf(text("group"))
  const unlabelled = unlabelledOf(group.name, name)
  const own = filtersOf(group, name)
  const canFilter = own !== undefined
  const times = { from: range.from.toISOString(), to: range.to.toISOString() }
  const query = { ...filters, ...times, ...own }
  const sum = useApi("/admin-ui/admin/usage/summary", { query }, { enabled: canFilter })
  const split = splitOf(text("split"))?.group
  const part = split === undefined || split.name === group.name ? groupOf("model") : split
  const parts = useApi(part.path, { query: { ...query, sort_by: "cost" } }, { enabled: canFilter })
  if (unlabelled !== undefined)
    return (
      <div className={styles.stack}>
        <p>{unlabelled.reason}</p>
        <p className={styles.controls}>
          <LinkButton path="/requests" search={unlabelled.search}>
            {unlabelled.search["status"] === undefined ? "All requests" : "Requests that failed"}
          </LinkButton>
        </p>
      </div>
    )
  if (own === undefined)
    return (
      <div className={styles.stack}>
        <p>Requests have the ids of their tasks and not the types, so that they cannot be filtered by it.</p>
        <p className={styles.controls}>
          <LinkButton path="/tasks" search={{ q: `type:${JSON.stringify(name)}` }}>
            Its tasks
          </LinkButton>
        </p>
      </div>
    )
  return (
    <div className={styles.stack}>
      <p className={styles.controls}>
        <LinkButton path="/requests" search={own}>
          Its requests
        </LinkButton>
        {group.page !== undefined && (
          <LinkButton path={`${group.page}/${encodeURIComponent(name)}`}>Its page</LinkButton>
        )}
        <LinkButton path="/usage" search={{ ...own, group: "model" }}>
          Look at it alone
        </LinkButton>
      </p>
      <Panel title="Sums" query={sum} height={300}>
        {sum.data !== undefined && <Sums sum={sum.data} unpriced={sum.data.unpriced_models} />}
      </Panel>
      <Panel title={`By ${part.label.toLowerCase()}`} query={parts} height={90}>
        <Facts
          facts={(parts.data ?? []).map(({ display_name, name, summary }) => [
            unlabelledOf(part.name, name)?.label ?? display_name,
            <span key={name}>
              <Money usd={summary.estimated_cost_usd} /> · <Count of={summary.request_count} /> requests ·{" "}
              <Count of={summary.total_tokens} short /> tokens
            </span>,
            name
          ])}
        />
      </Panel>
    </div>
  )
}

const Sums = ({ sum, unpriced }: { readonly sum: Summary; readonly unpriced: ReadonlyArray<string> }) => (
  <Facts
    facts={[
      ["Requests", <Count key="requests" of={sum.request_count} />],
      ["Failed", `${countText(sum.failure_count)} (${percentText(sum.failure_count, sum.request_count)})`],
      ["Refused by policies", <Count key="denied" of={sum.policy_denial_count} />],
      ["Refused by rate limits", <Count key="limited" of={sum.rate_limit_denial_count} />],
      ["Refused by budgets", <Count key="budget" of={sum.budget_denial_count} />],
      ["Blocked by guardrails", <Count key="blocked" of={sum.guardrail_block_count} />],
      ["Cost", <Money key="cost" usd={sum.estimated_cost_usd} />],
      ["Requests of a dollar or more", <Count key="expensive" of={sum.expensive_request_count} />],
      ["Requests without a price", <Count key="unpriced" of={sum.unpriced_request_count} />],
      ["Models without a price", unpriced.join(", ")],
      ["Input tokens", <Count key="input" of={sum.input_tokens} />],
      ["Output tokens", <Count key="output" of={sum.output_tokens} />],
      ["Cached input", sum.cached_share === null ? null : percentText(sum.cached_share, 1)],
      ["Reasoning tokens", <Count key="reasoning" of={sum.reasoning_tokens} />],
      ["Average duration", sum.average_latency_ms === null ? null : durationText(sum.average_latency_ms)],
      ["Fallbacks", `${countText(sum.fallback_count)} (${percentText(sum.fallback_rate, 1)})`],
      [
        "Source of the tokens",
        `${countText(sum.reported_count)} reported, ${countText(sum.estimated_count)} estimated, ${countText(sum.status_only_count)} without`
      ]
    ]}
  />
)
