import { Group } from "@mantine/core"
import { Link } from "@tanstack/react-router"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import type { Column } from "../../shared/table/DataTable.tsx"
import { meaningOfQueue } from "../../shared/tasks/meanings.ts"
import { Count } from "../../shared/words/Amounts.tsx"
import { durationText } from "../../shared/words/format.ts"
import { StatusWord } from "../../shared/words/StatusWord.tsx"
import { When } from "../../shared/words/When.tsx"
import styles from "./Board.module.css"
import type { BoardRow } from "./boardRow.ts"
import { ExplainLongest } from "./ExplainLongest.tsx"
import { Flow } from "./Flow.tsx"
import { PauseButton } from "./PauseButton.tsx"

export const queueColumns: ReadonlyArray<Column<BoardRow>> = [
  {
    id: "queue",
    header: "Queue",
    cell: ({ queue }) => (
      <Link to="/tasks" search={{ q: `queue:${queue}` }} className={styles.queue}>
        <ForeignText>{queue}</ForeignText>
      </Link>
    )
  },
  {
    id: "state",
    header: "State",
    main: true,
    width: 110,
    cell: ({ state }) => <StatusWord meaning={meaningOfQueue[state]}>{state}</StatusWord>
  },
  {
    id: "ready",
    header: "Ready",
    numeric: true,
    main: true,
    cell: ({ oldest_age, ready }) => (
      <span className={styles.stacked}>
        <Count of={ready} short />
        {oldest_age !== null && <Age {...oldest_age} />}
      </span>
    )
  },
  {
    id: "in_work",
    header: "In work",
    numeric: true,
    main: true,
    cell: ({ in_work, longest }) => (
      <span className={styles.stacked}>
        <Count of={in_work} short />
        {longest !== undefined && (
          <Link to="/tasks/$taskId" params={{ taskId: longest.task_id }} className={styles.beside}>
            oldest <When at={longest.started_at} />
          </Link>
        )}
      </span>
    )
  },
  {
    id: "waiting",
    header: "Retry wait",
    numeric: true,
    main: true,
    cell: ({ next_retry_at, waiting_for_retry }) => (
      <span className={styles.stacked}>
        <Count of={waiting_for_retry} short />
        {next_retry_at !== null && (
          <span className={styles.beside}>
            next <When at={next_retry_at} />
          </span>
        )}
      </span>
    )
  },
  {
    id: "dead",
    header: "Dead",
    numeric: true,
    main: true,
    cell: ({ dead, open, queue, settled }) => (
      <span className={styles.stacked}>
        {dead === null || open === null || open === 0 ? (
          <Count of={dead === null ? null : open} />
        ) : (
          <Link to="/dead-letters" search={{ tab: "letters", source_queue_name: queue }} className={styles.dead}>
            <Count of={open} short />
          </Link>
        )}
        {settled > 0 && (
          <Link to="/dead-letters" search={{ tab: "queues" }} className={styles.beside}>
            {settled} replayed
          </Link>
        )}
      </span>
    )
  },
  {
    id: "consumers",
    header: "Consumers",
    numeric: true,
    main: true,
    cell: ({ consumers, stopped_consumers }) => (
      <span className={styles.stacked}>
        <Count of={consumers} />
        {stopped_consumers > 0 && <span className={styles.beside}>{stopped_consumers} stopped</span>}
      </span>
    )
  },
  { id: "flow", header: "In and out, 60 min", width: 150, main: true, cell: (row) => <Flow view={row} /> },
  {
    id: "actions",
    header: "Actions",
    main: true,
    cell: (row) => (
      <Group gap={4} wrap="nowrap" justify="end">
        <ExplainLongest row={row} />
        <PauseButton view={row} />
      </Group>
    )
  }
]

const Age = ({ is, seconds }: NonNullable<BoardRow["oldest_age"]>) => (
  <span className={styles.beside}>
    oldest {is === "more_than" ? ">" : "~"} {durationText(seconds * 1_000)}
  </span>
)
