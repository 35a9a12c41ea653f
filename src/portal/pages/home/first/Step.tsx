import { IconCheck } from "@tabler/icons-react"
import type { ReactNode } from "react"
import styles from "./FirstSteps.module.css"

interface Props {
  readonly number: number
  readonly title: string
  readonly state: "waiting" | "now" | "done"
  readonly children?: ReactNode
}

const words = { waiting: "not yet", now: "this one", done: "done" } as const

export const Step = ({ children, number, state, title }: Props) => (
  <li className={styles.step} data-state={state} aria-current={state === "now" ? "step" : undefined}>
    <span className={styles.number} data-state={state} role="img" aria-label={`Step ${number}, ${words[state]}`}>
      {state === "done" ? <IconCheck size={17} aria-hidden={true} /> : number}
    </span>
    <div className={styles.content}>
      <h2>{title}</h2>
      {children}
    </div>
  </li>
)
