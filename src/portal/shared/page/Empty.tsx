import type { ReactNode } from "react"
import { CodeBlock } from "../words/CodeBlock.tsx"
import styles from "./Empty.module.css"

interface Props {
  /** One sentence. */
  readonly children: ReactNode
  readonly action?: ReactNode
  /** The same with curl. `false` where the token does not allow it. */
  readonly command?: string | false
}

/** What a list without rows says, and what to do about it. */
export const Empty = ({ action, children, command }: Props) => (
  <div className={styles.empty}>
    <p>{children}</p>
    {action}
    {typeof command === "string" && <CodeBlock text={command} label="Command" />}
  </div>
)
