import { UnstyledButton } from "@mantine/core"
import { useTextSearch } from "../../address/search.ts"
import { useTasksApi } from "../../api/queries.ts"
import type { TaskCounts } from "../../api/TaskTypes.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { meaningOfTaskStatus } from "../../shared/tasks/meanings.ts"
import { countText } from "../../shared/words/format.ts"
import { Sentence } from "../../shared/words/Sentence.tsx"
import { StatusWord } from "../../shared/words/StatusWord.tsx"
import { withPart } from "./searchText.ts"
import styles from "./Tasks.module.css"

interface Props {
  readonly query: Readonly<Record<string, string>>
}

/** How many tasks of the search have each status. A click shows those alone. */
export const StatusCounts = ({ query }: Props) => {
  const { change, text } = useTextSearch()
  const { status, ...others } = query
  const counts = useTasksApi<TaskCounts>("/tasks/counts", others)
  const asked = text("q") ?? ""
  const toggle = (name: string) =>
    change({ q: withPart(asked, "status", name === status ? undefined : name) || undefined })
  if (counts.data === undefined) return <div className={styles.counts} aria-hidden="true" />
  const { counts: found, looked } = counts.data
  return (
    <div className={styles.counts} data-dimmed={counts.isPlaceholderData || undefined}>
      {found.map(({ at_least, count, status: name }) => (
        <UnstyledButton key={name} className={styles.count} onClick={() => toggle(name)} aria-pressed={name === status}>
          <StatusWord meaning={meaningOfTaskStatus(name)}>
            <ForeignText>{name}</ForeignText>
          </StatusWord>
          {at_least && "≥ "}
          {countText(count)}
        </UnstyledButton>
      ))}
      {!looked.complete && (
        <span className={styles.looked}>
          <Sentence text={looked.sentence} />
        </span>
      )}
    </div>
  )
}
