import { Button } from "@mantine/core"
import { useState } from "react"
import { useLive } from "../../api/live.ts"
import type { TaskPage } from "../../api/TaskTypes.ts"
import { countText } from "../../shared/words/format.ts"
import { Sentence } from "../../shared/words/Sentence.tsx"
import { StatusWord } from "../../shared/words/StatusWord.tsx"
import styles from "./Tasks.module.css"

interface Props {
  readonly first: TaskPage | undefined
  /** The rows follow what happens. Else it is counted, and a person decides when they change. */
  readonly isFollowed: boolean
  readonly onRefresh: () => void
}

/** The API speaks of its cursor; a person sees the button below the table. */
const cursorWords = / next_cursor [^.]*\./

/** How far the search looked, and what the index lacks. */
export const HowFar = ({ first, isFollowed, onRefresh }: Props) => {
  const [missed, setMissed] = useState(0)
  useLive(({ tasks }) => {
    const count = Object.values(tasks ?? {}).reduce((sum, digest) => sum + digest.count, 0)
    if (!isFollowed) setMissed((before) => before + count)
  })
  if (first === undefined) return <span className={styles.looked}>{"\u00a0"}</span>
  const { index, looked } = first
  return (
    <span className={styles.looked}>
      <span>
        <Sentence text={looked.sentence.replace(cursorWords, "")} />
      </span>
      {missed > 0 && !isFollowed && (
        <Button
          variant="default"
          size="compact-sm"
          onClick={() => {
            setMissed(0)
            onRefresh()
          }}
        >
          {countText(missed)} statuses since: read again
        </Button>
      )}
      {index.failure !== null && <StatusWord meaning="warning">index behind: {index.failure}</StatusWord>}
      {index.failure === null && !index.caught_up && <StatusWord meaning="waiting">catching up</StatusWord>}
      {!index.backfilled && <StatusWord meaning="waiting">older statuses are still read</StatusWord>}
    </span>
  )
}
