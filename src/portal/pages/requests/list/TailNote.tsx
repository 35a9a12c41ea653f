import { Button } from "@mantine/core"
import { IconArrowUp } from "@tabler/icons-react"
import { useLiveState } from "../../../api/live.ts"
import { countText } from "../../../shared/words/format.ts"
import styles from "./RequestList.module.css"
import type { Tail } from "./tail.ts"

interface Props {
  readonly tail: Tail
  readonly isOn: boolean
  readonly onRelease: () => void
  readonly onReload: () => void
}

/** Says whether new requests appear, how many wait, and how many were too many to be shown. */
export const TailNote = ({ isOn, onRelease, onReload, tail: { leftOut, shown, waiting } }: Props) => {
  const state = useLiveState()
  return (
    <div className={styles.note}>
      {waiting.length > 0 && (
        <Button variant="light" leftSection={<IconArrowUp size={14} />} onClick={onRelease}>
          {countText(waiting.length)} new
        </Button>
      )}
      <span aria-live="polite">{sentenceOf(isOn, state, waiting.length > 0)}</span>
      {leftOut > 0 && (
        <span>
          {countText(shown.length)} shown as they came; {countText(leftOut)} more were too many to show one by one.{" "}
          <Button variant="subtle" onClick={onReload}>
            Read the list again
          </Button>
        </span>
      )}
    </div>
  )
}

const sentenceOf = (isOn: boolean, state: string, isWaiting: boolean): string => {
  if (!isOn) return "New requests do not appear: the range has ended, or the order is not that of time."
  if (state === "off") return "Your token has no scope for live data."
  if (state === "paused" || state === "reconnecting") return "New requests appear once the page is live again."
  return isWaiting ? "They wait while you are at the rows." : "New requests appear at the top."
}
