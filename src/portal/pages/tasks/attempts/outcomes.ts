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
import { countedText, countText } from "../../../shared/words/format.ts"
import type { Meaning } from "../../../shared/words/StatusWord.tsx"
import type { Attempt, Outcome } from "./attempts.ts"

interface Shown {
  readonly meaning: Meaning
  readonly words: string
  readonly icon: ComponentType<IconProps>
}

/** How the outcomes of attempts look, in every tab. */
export const outcomes: Readonly<Record<Outcome, Shown>> = {
  done: { meaning: "good", words: "done", icon: IconCheck },
  retried: { meaning: "warning", words: "failed and retried", icon: IconRotateClockwise },
  dead: { meaning: "bad", words: "failed", icon: IconX },
  handed_over: { meaning: "waiting", words: "handed over", icon: IconArrowForward },
  running: { meaning: "working", words: "running", icon: IconPlayerPlay },
  cancelled: { meaning: "idle", words: "cancelled", icon: IconBan },
  unknown: { meaning: "idle", words: "end not known", icon: IconHelp }
}

/** "2 failed, 1 failed and retried, 1 done": how many attempts ended how, in the order in which it first happened. */
export const outcomesText = (attempts: ReadonlyArray<Pick<Attempt, "outcome">>): string =>
  [...Map.groupBy(attempts, ({ outcome }) => outcome)]
    .map(([outcome, { length }]) => `${countText(length)} ${outcomes[outcome].words}`)
    .join(", ")

/** "4 attempts", or "4 attempts and 1 aggregation". */
export const attemptsText = (attempts: ReadonlyArray<Pick<Attempt, "isAggregation">>): string => {
  const aggregations = attempts.filter(({ isAggregation }) => isAggregation).length
  const own = countedText(attempts.length - aggregations, "attempt")
  return aggregations === 0 ? own : `${own} and ${countedText(aggregations, "aggregation")}`
}
