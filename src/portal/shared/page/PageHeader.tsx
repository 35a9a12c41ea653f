import type { ReactNode } from "react"
import { useEffect } from "react"
import { installation } from "../../api/installation.ts"
import { ForeignText } from "../foreign/ForeignText.tsx"
import { shownText } from "../foreign/marks.ts"
import styles from "./PageHeader.module.css"

interface Props {
  readonly title: string
  /** The question that the page answers, or what it is for. */
  readonly lead?: ReactNode
  /** Beside the title: a state, an id. */
  readonly beside?: ReactNode
  readonly actions?: ReactNode
  /** Which actions there are depends on an answer. On narrow screens they have a row of their own from the beginning. */
  readonly areActionsLate?: boolean
}

export const PageHeader = ({ actions, areActionsLate = false, beside, lead, title }: Props) => {
  useEffect(() => {
    document.title = [shownText(title), installation.environment, "svc-runtime"].filter(Boolean).join(" · ")
  }, [title])
  return (
    <header className={styles.header}>
      <div className={styles.words}>
        <div className={styles.title}>
          <h1>
            <ForeignText>{title}</ForeignText>
          </h1>
          {beside}
        </div>
        {lead !== undefined && (
          <p className={styles.lead}>{typeof lead === "string" ? <ForeignText>{lead}</ForeignText> : lead}</p>
        )}
      </div>
      {actions !== undefined && (
        <div className={styles.actions} data-late={areActionsLate || undefined}>
          {actions}
        </div>
      )}
    </header>
  )
}
