import { Link } from "@tanstack/react-router"
import type { Problem } from "../../../api/TaskTypes.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { countedText } from "../../../shared/words/format.ts"
import { type Meaning, StatusWord } from "../../../shared/words/StatusWord.tsx"
import { shortId } from "../letterName.ts"
import styles from "./Replay.module.css"

const meanings: Readonly<Record<Problem["outcome"], Meaning>> = { skipped: "idle", failed: "bad", unknown: "warning" }

const mostShown = 200

/** The letters that were not published, or of which that is not known. */
export const Problems = ({ problems }: { readonly problems: ReadonlyArray<Problem> }) => (
  <div className={styles.panels}>
    <Panel title="Why they were not published" note={countedText(problems.length, "letter")}>
      <ul className={styles.problems}>
        {problems.slice(0, mostShown).map(({ detail, dlq_id, outcome }) => (
          <li key={dlq_id}>
            <StatusWord meaning={meanings[outcome]}>{outcome}</StatusWord>
            <Link to="/dead-letters/$dlqId" params={{ dlqId: dlq_id }}>
              <code>{shortId(dlq_id)}</code>
            </Link>
            <ForeignText>{detail}</ForeignText>
          </li>
        ))}
      </ul>
      {problems.length > mostShown && <p>and {problems.length - mostShown} more</p>}
    </Panel>
  </div>
)
