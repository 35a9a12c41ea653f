import type { TaskPage } from "../../api/TaskTypes.ts"
import { StatusWord } from "../../shared/words/StatusWord.tsx"
import styles from "./Tasks.module.css"

/** The API speaks of its cursor; a person has a button. */
const cursorWords = / next_cursor [^.]*\./

/** How far the search looked, and what the index lacks. */
export const HowFar = ({ first }: { readonly first: TaskPage | undefined }) => {
  if (first === undefined) return <span className={styles.looked}>{"\u00a0"}</span>
  const { index, looked } = first
  return (
    <span className={styles.looked}>
      {looked.sentence.replace(cursorWords, " Show more looks further.")}
      {index.failure !== null && <StatusWord meaning="warning">index behind: {index.failure}</StatusWord>}
      {index.failure === null && !index.caught_up && <StatusWord meaning="waiting">catching up</StatusWord>}
      {!index.backfilled && <StatusWord meaning="waiting">older statuses are still read</StatusWord>}
    </span>
  )
}
