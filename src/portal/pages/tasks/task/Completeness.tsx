import { Popover, UnstyledButton } from "@mantine/core"
import type { ExecutionView } from "../../../api/TaskTypes.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import styles from "./Task.module.css"

const mostIds = 5

/** Whether all is shown that has happened, and what is missing. */
export const Completeness = ({ summary }: { readonly summary: ExecutionView["summary"] }) => {
  const { completeness_reasons: reasons, graph_completeness: completeness } = summary
  if (completeness === "full" && reasons.length === 0) return <StatusWord meaning="good">history complete</StatusWord>
  return (
    <Popover width={340} withinPortal>
      <Popover.Target>
        <UnstyledButton className={styles.badge}>
          <StatusWord meaning="warning">history partial</StatusWord>
        </UnstyledButton>
      </Popover.Target>
      <Popover.Dropdown>
        <p>
          {completeness === "partial"
            ? "There are no observations of workers, so attempts and retries are not known."
            : "Something is missing:"}
        </p>
        <ul className={styles.reasons}>
          {reasons.map(({ reason, task_ids }) => (
            <li key={reason}>
              {reason.replaceAll("_", " ")}: <ForeignText>{task_ids.slice(0, mostIds).join(", ")}</ForeignText>
              {task_ids.length > mostIds && ` and ${task_ids.length - mostIds} more`}
            </li>
          ))}
        </ul>
      </Popover.Dropdown>
    </Popover>
  )
}
