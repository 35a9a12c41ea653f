import { Loader } from "@mantine/core"
import { Link } from "@tanstack/react-router"
import { useState } from "react"
import { useApi } from "../../../api/queries.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { Money } from "../../../shared/words/Amounts.tsx"
import { countedText, durationText } from "../../../shared/words/format.ts"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import { When } from "../../../shared/words/When.tsx"
import { PlainWords } from "../common/PlainWords.tsx"
import styles from "./KeyTest.module.css"

const latest = 5

/**
 * Waits for requests of this key, and shows those that were not there when the page was opened. The clock of the browser
 * has no part in it, because it may be wrong.
 */
export const Arrivals = () => {
  const [before, setBefore] = useState<ReadonlySet<string>>()
  const arrived = useApi("/admin-ui/v1/me/requests", { query: { limit: latest } }, { refreshMs: 2_000 })
  const found = arrived.data?.rows ?? []
  if (before === undefined && arrived.isFetchedAfterMount) setBefore(new Set(found.map(({ id }) => id)))
  const rows = found.filter(({ id }) => before?.has(id) === false)
  return (
    <Panel title="Your requests since you opened this page" query={arrived} height={24}>
      <div aria-live="polite">
        {rows.length === 0 ? (
          <p className={styles.waiting}>
            <Loader size={14} type="dots" aria-hidden="true" /> Waits for your first one. It appears once it has ended.
          </p>
        ) : (
          <ul className={styles.arrived}>
            {rows.map((row) => (
              <li key={row.id}>
                <StatusWord meaning={row.status === "success" ? "good" : "bad"}>
                  {row.status === "success" ? "It works" : `refused · ${row.status_code}`}
                </StatusWord>
                <span>
                  <ForeignText>{row.model ?? "no model"}</ForeignText>
                  {row.client !== null && row.client !== "other" && <> by {row.client}</>}
                </span>
                {row.refusal === null ? (
                  <span>
                    {row.total_tokens !== null && <>{countedText(row.total_tokens, "token")}, </>}
                    <Money usd={row.estimated_cost_usd} />, {durationText(row.latency_ms)}
                  </span>
                ) : (
                  <span>
                    {row.refusal.sentence} <PlainWords text={row.refusal.what_to_do} />
                  </span>
                )}
                <Link to="/my/requests" search={{ open: row.id }}>
                  <When at={row.created_at} />
                </Link>
              </li>
            ))}
          </ul>
        )}
      </div>
    </Panel>
  )
}
