import { useNow } from "../../address/useNow.ts"
import { useLiveState } from "../../api/live.ts"
import { durationText } from "../words/format.ts"
import styles from "./Age.module.css"
import type { PartQuery } from "./PartQuery.ts"

const staleMs = 60_000
/** Content is read again after a minute (`queries.ts`), and the answer has so long to arrive. */
const answerMs = 10_000

interface Props {
  readonly query: PartQuery
  /** Live events add what is new to the content, so that it becomes old with them alone. */
  readonly isFollowed?: boolean
}

/** Says how old the content is, once it is old: reading it fails or is paused, or it is left alone. */
export const Age = ({ isFollowed = false, query: { dataUpdatedAt, error } }: Props) => {
  const now = useNow(10_000)
  const state = useLiveState()
  const age = now - dataUpdatedAt
  const isNew = isFollowed && error === null && (state === "live" || state === "reset")
  if (isNew || dataUpdatedAt === 0 || age < (error === null ? staleMs + answerMs : staleMs)) return null
  return <span className={styles.stale}>{durationText(age)} old</span>
}
