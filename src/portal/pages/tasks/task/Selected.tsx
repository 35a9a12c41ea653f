import { CloseButton } from "@mantine/core"
import { Link } from "@tanstack/react-router"
import type { GraphNode } from "../../../api/TaskTypes.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { type Fact, Facts } from "../../../shared/words/Facts.tsx"
import { durationText } from "../../../shared/words/format.ts"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import { When } from "../../../shared/words/When.tsx"
import type { Attempt } from "../attempts/attempts.ts"
import { kindOf, labelOf } from "../attempts/nodes.ts"
import { outcomes } from "../attempts/outcomes.ts"
import styles from "./Task.module.css"
import type { TaskData } from "./useTask.ts"

interface Props {
  readonly task: TaskData
  readonly selection: string | undefined
  readonly onClose: () => void
}

/** What is selected in any of the views, with all that is known of it. */
export const Selected = ({ onClose, selection, task }: Props) => {
  const node = task.view.data?.graph.nodes.find(({ id }) => id === selection)
  if (node === undefined) return null
  const attempt = task.attempts.find(({ id, parts }) => id === node.id || parts.includes(node.id))
  return (
    <div className={styles.selected}>
      <Panel
        title={<ForeignText>{labelOf(node)}</ForeignText>}
        note={kindOf(node)}
        actions={<CloseButton aria-label="Select nothing" onClick={onClose} />}
      >
        <Facts facts={[...nodeFacts(node), ...(attempt === undefined ? [] : attemptFacts(attempt))]} />
      </Panel>
    </div>
  )
}

const nodeFacts = (node: GraphNode): ReadonlyArray<Fact> => [
  ["Time", <When key="time" at={node.timestamp} />],
  ...(node.task_id === null
    ? []
    : [
        [
          "Task",
          <Link key="task" to="/tasks/$taskId" params={{ taskId: node.task_id }}>
            <ForeignText>{node.task_id}</ForeignText>
          </Link>
        ] as const
      ]),
  ...Object.entries(node.annotations).flatMap(([name, value]): ReadonlyArray<Fact> => {
    if (value === null || value === "" || name === "task_id") return []
    if (name === "dlq_id" && typeof value === "string")
      return [
        [
          "Dead letter",
          <Link key="letter" to="/dead-letters/$dlqId" params={{ dlqId: value }}>
            <code>{value.slice(0, 12)}</code>
          </Link>
        ]
      ]
    const text = typeof value === "object" ? JSON.stringify(value) : String(value)
    return text === "{}" ? [] : [[name, <ForeignText key={name}>{text}</ForeignText>]]
  })
]

const attemptFacts = ({ end, message, outcome, retry, start, statuses }: Attempt): ReadonlyArray<Fact> => [
  [
    "Outcome",
    <StatusWord key="outcome" meaning={outcomes[outcome].meaning}>
      {outcomes[outcome].words}
    </StatusWord>
  ],
  ...(message === null ? [] : [["Exception", <ForeignText key="exception">{message}</ForeignText>] as const]),
  ["From its delivery to its end", end === undefined ? "–" : durationText(end - start)],
  ...(retry?.until === undefined ? [] : [["Waited for its retry", durationText(retry.until - retry.from)] as const]),
  ...(statuses.length === 0 ? [] : [["Statuses", statuses.map(({ label }) => label).join(" → ")] as const])
]
