import type { ReactNode } from "react"
import { CodeBlock } from "../words/CodeBlock.tsx"
import styles from "./Empty.module.css"

interface Props {
  /** One sentence. */
  readonly children: ReactNode
  readonly action?: ReactNode
  /** The same with curl. */
  readonly command?: string
}

/** What a list without rows says, and what to do about it. */
export const Empty = ({ action, children, command }: Props) => (
  <div className={styles.empty}>
    <p>{children}</p>
    {action}
    {command !== undefined && <CodeBlock text={command} label="Command" />}
  </div>
)
