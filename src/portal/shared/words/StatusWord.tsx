import type { IconProps } from "@tabler/icons-react"
import {
  IconAlertTriangle,
  IconCircleCheck,
  IconCircleDashed,
  IconCircleX,
  IconClock,
  IconPlayerPlay
} from "@tabler/icons-react"
import type { ComponentType, ReactNode } from "react"
import styles from "./StatusWord.module.css"

/** What a state means to a person, whatever it is a state of. Each has a colour, an icon and words. */
export type Meaning = "good" | "working" | "waiting" | "warning" | "bad" | "idle"

const icons: Readonly<Record<Meaning, ComponentType<IconProps>>> = {
  good: IconCircleCheck,
  working: IconPlayerPlay,
  waiting: IconClock,
  warning: IconAlertTriangle,
  bad: IconCircleX,
  idle: IconCircleDashed
}

interface Props {
  readonly meaning: Meaning
  readonly children: ReactNode
}

/** A state, told by an icon and a word as well as by its colour. */
export const StatusWord = ({ children, meaning }: Props) => {
  const Icon = icons[meaning]
  return (
    <span className={styles.word} data-meaning={meaning}>
      <Icon size={13} stroke={2} aria-hidden={true} />
      {children}
    </span>
  )
}

/** The meanings of how ready a process or the installation is. */
export const meaningOfReadiness = { ready: "good", degraded: "warning", not_ready: "bad" } as const

/** The meaning of an HTTP status. */
export const meaningOfStatus = (status: number): Meaning =>
  status >= 500
    ? "bad"
    : status === 429 || status === 403 || status === 401
      ? "warning"
      : status >= 400
        ? "bad"
        : "good"
