import type { IconProps } from "@tabler/icons-react"
import {
  IconArrowForward,
  IconBan,
  IconCheck,
  IconHelp,
  IconPlayerPlay,
  IconRotateClockwise,
  IconX
} from "@tabler/icons-react"
import type { ComponentType } from "react"
import type { Meaning } from "../../../shared/words/StatusWord.tsx"
import type { Outcome } from "./attempts.ts"

interface Shown {
  readonly meaning: Meaning
  readonly words: string
  readonly icon: ComponentType<IconProps>
}

/** How the outcomes of attempts look, in every tab. */
export const outcomes: Readonly<Record<Outcome, Shown>> = {
  done: { meaning: "good", words: "done", icon: IconCheck },
  retried: { meaning: "warning", words: "failed, retried", icon: IconRotateClockwise },
  dead: { meaning: "bad", words: "failed", icon: IconX },
  handed_over: { meaning: "waiting", words: "handed over", icon: IconArrowForward },
  running: { meaning: "working", words: "running", icon: IconPlayerPlay },
  cancelled: { meaning: "idle", words: "cancelled", icon: IconBan },
  unknown: { meaning: "idle", words: "end not known", icon: IconHelp }
}
