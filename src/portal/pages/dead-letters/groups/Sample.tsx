import { Button } from "@mantine/core"
import { Link } from "@tanstack/react-router"
import { useMemo, useState } from "react"
import { useRefresh } from "../../../api/queries.ts"
import { useRead } from "../../../api/reads.ts"
import type { DeadLetterSummary, Letter } from "../../../api/TaskTypes.ts"
import { callTasks, taskPath, tasksPath } from "../../../api/tasks.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { HiddenNote } from "../../../shared/tasks/HiddenNote.tsx"
import { letterName } from "../letterName.ts"
import { compareLetters } from "./compareLetters.ts"
import styles from "./Group.module.css"

const sampleSize = 5

/** A few letters side by side: what they have in common is the cause more often than what they do not. */
export const Sample = ({ letters }: { readonly letters: ReadonlyArray<DeadLetterSummary> }) => {
  const ids = letters.slice(0, sampleSize).map(({ dlq_id }) => dlq_id)
  const sample = useRead<ReadonlyArray<Letter>>({
    queryKey: [tasksPath, "sample", ids],
    queryFn: async ({ signal }) => {
      const found: Array<Letter> = []
      // one after the other: the server makes few of these at once for one address
      for (const id of ids) found.push(await callTasks<Letter>("GET", taskPath`/dlq/messages/${id}`, { signal }))
      return found
    },
    enabled: ids.length > 0,
    refetchInterval: useRefresh()
  })
  const [isWanted, setWanted] = useState(false)
  const [hasSecrets, setSecrets] = useState(false)
  const { hidden, members } = useMemo(() => compareLetters(sample.data ?? [], hasSecrets), [sample.data, hasSecrets])
  const isAlone = ids.length === 1
  const isWhole = isWanted || isAlone
  const different = members.filter(({ isSame }) => !isSame)
  const shown = isWhole ? members : different
  return (
    <Panel
      title={ids.length === 0 ? "Sample" : `Sample of ${ids.length}`}
      note={
        sample.data !== undefined &&
        (isAlone
          ? "its only letter, which nothing can be compared with"
          : `${different.length} members differ, ${members.length - different.length} are the same in all`)
      }
      query={sample}
      height={200}
      flush
      actions={
        !isAlone && (
          <Button variant="default" onClick={() => setWanted(!isWanted)}>
            {isWanted ? "Differences alone" : "Show what is the same"}
          </Button>
        )
      }
    >
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reached with the keyboard */}
      <div className={styles.scroller} tabIndex={0}>
        <table className={styles.compare} aria-label="Members of the letters">
          <thead>
            <tr>
              <th scope="col">Member</th>
              {(sample.data ?? []).map(({ dlq_id, task_id }) => (
                <th key={dlq_id} scope="col">
                  <Link to="/dead-letters/$dlqId" params={{ dlqId: dlq_id }}>
                    <ForeignText>{letterName({ dlq_id, task_id })}</ForeignText>
                  </Link>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map(({ isSame, path, values }) => (
              <tr key={path} data-different={!isSame || undefined}>
                <th scope="row">
                  <code>
                    <ForeignText>{path}</ForeignText>
                  </code>
                </th>
                {isSame ? (
                  <td colSpan={values.length}>
                    <ForeignText>{values[0]}</ForeignText>
                  </td>
                ) : (
                  values.map((value, place) => (
                    <td key={sample.data?.[place]?.dlq_id} title={value}>
                      {value === undefined ? "–" : <ForeignText>{value}</ForeignText>}
                    </td>
                  ))
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <div className={styles.hidden}>
        <HiddenNote hidden={hidden} isShown={hasSecrets} onShow={setSecrets} />
      </div>
    </Panel>
  )
}
