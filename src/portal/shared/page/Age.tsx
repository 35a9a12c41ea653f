import { useNow } from "../../address/useNow.ts"
import { useLiveState } from "../../api/live.ts"
import { durationText } from "../words/format.ts"
import styles from "./Age.module.css"
import type { PartQuery } from "./PartQuery.ts"

const staleMs = 60_000

/** Says how old the content is, once it is old and does not become newer: reading it fails, or nothing tells of changes. */
export const Age = ({ query: { dataUpdatedAt, error } }: { readonly query: PartQuery }) => {
  const now = useNow(10_000)
  const state = useLiveState()
  const age = now - dataUpdatedAt
  const isFollowed = error === null && state !== "paused" && state !== "reconnecting"
  if (isFollowed || dataUpdatedAt === 0 || age < staleMs) return null
  return <span className={styles.stale}>{durationText(age)} old</span>
}
