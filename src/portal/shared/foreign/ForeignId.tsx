import styles from "./ForeignText.module.css"
import { shownText } from "./marks.ts"

/** So much of the end of an id is seen however little room there is. */
const keptAtEnd = 8
/** So much has room on a phone. */
const alwaysWhole = 12

/**
 * An id that somebody else wrote, cut in its middle where there is no room: ids of one family differ at their ends. Its
 * two parts are read with a space between them, so a link that consists of it needs a label of its own.
 */
export const ForeignId = ({ id }: { readonly id: string }) => {
  const characters = [...shownText(id)]
  if (characters.length <= alwaysWhole) return <bdi title={shownText(id)}>{characters.join("")}</bdi>
  return (
    <bdi className={styles.id} title={shownText(id)} data-whole={id}>
      <span>{characters.slice(0, -keptAtEnd).join("")}</span>
      <span>{characters.slice(-keptAtEnd).join("")}</span>
    </bdi>
  )
}
