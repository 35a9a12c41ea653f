import styles from "./ForeignText.module.css"
import { shownText } from "./marks.ts"

/** So much of the end of an id is seen however little room there is. */
const keptAtEnd = 8

/** An id that somebody else wrote, cut in its middle where there is no room: ids of one family differ at their ends. */
export const ForeignId = ({ id }: { readonly id: string }) => {
  const characters = [...shownText(id)]
  return (
    <bdi className={styles.id} title={shownText(id)}>
      <span>{characters.slice(0, -keptAtEnd).join("")}</span>
      <span>{characters.slice(-keptAtEnd).join("")}</span>
    </bdi>
  )
}
