import { Loader } from "@mantine/core"
import { Link } from "@tanstack/react-router"
import { useState } from "react"
import { useApi } from "../../../api/queries.ts"
import { Panel } from "../../../shared/page/Panel.tsx"
import { Money } from "../../../shared/words/Amounts.tsx"
import { countText, durationText } from "../../../shared/words/format.ts"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import { When } from "../../../shared/words/When.tsx"
import { PlainWords } from "../words/PlainWords.tsx"
import styles from "./KeyTest.module.css"

/** Waits for requests of this key that begin after the page was opened, and shows them as they end. */
export const Arrivals = () => {
  const [since] = useState(() => new Date().toISOString())
  const query = { from: since, limit: 5 }
  const arrived = useApi("/admin-ui/v1/me/requests", { query }, { refreshMs: 2_000 })
  const rows = arrived.data?.rows ?? []
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
                  <bdi>{row.model ?? row.route}</bdi>
                  {row.client !== null && <> by {row.client}</>}
                </span>
                {row.refusal === null ? (
                  <span>
                    {row.total_tokens !== null && <>{countText(row.total_tokens)} tokens, </>}
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
