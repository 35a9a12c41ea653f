import type { ResponseOf } from "../../api/Endpoints.ts"
import { JsonDiff } from "../../shared/diff/JsonDiff.tsx"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { type Meaning, StatusWord } from "../../shared/words/StatusWord.tsx"
import styles from "./Configuration.module.css"

type Plan = ResponseOf<"POST", "/admin-ui/admin/configuration/plan">
type Change = Plan["changes"][number]

const meanings: Readonly<Record<Change["action"], Meaning>> = { create: "good", update: "working", delete: "bad" }

interface Props {
  readonly plan: Plan
  /** The changes and their impact, without the fields. */
  readonly isShort?: boolean
}

/** The changes of a plan by section, whom they concern, and each field that differs. */
export const PlanView = ({ isShort = false, plan: { changes } }: Props) => {
  if (changes.length === 0) return <p>Nothing changes: the document is what is configured.</p>
  const sections = Map.groupBy(changes, ({ section }) => section)
  return (
    <div className={styles.plan}>
      {[...sections].map(([section, ofSection]) => (
        <section key={section}>
          <h3>
            <code>{section}</code> {ofSection.length}
          </h3>
          <ul className={styles.changes}>
            {ofSection.map((change) => (
              <li key={`${change.action} ${change.id}`}>
                <ChangeLine change={change} isShort={isShort} />
              </li>
            ))}
          </ul>
        </section>
      ))}
    </div>
  )
}

const ChangeLine = ({ change, isShort }: { readonly change: Change; readonly isShort: boolean }) => {
  const { action, after, before, id, summary } = change
  const words = (
    <>
      <StatusWord meaning={meanings[action]}>{action}</StatusWord> <ForeignText>{id}</ForeignText>
      {summary !== null && <span className={styles.impact}> {summary}</span>}
    </>
  )
  if (isShort) return words
  return (
    <details open={action === "update"}>
      <summary>{words}</summary>
      <JsonDiff before={before} after={after} label={`Difference of ${id}`} />
    </details>
  )
}
