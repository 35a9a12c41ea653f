import { Group } from "@mantine/core"
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import type { Column } from "../../shared/table/DataTable.tsx"
import { meaningOfQueue } from "../../shared/tasks/meanings.ts"
import { Count } from "../../shared/words/Amounts.tsx"
import { durationText } from "../../shared/words/format.ts"
import { StatusWord } from "../../shared/words/StatusWord.tsx"
import { When } from "../../shared/words/When.tsx"
import styles from "./Board.module.css"
import type { BoardRow } from "./boardRow.ts"
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
      <Labelled name="ready">
        <Count of={ready} short />
        {oldest_age !== null && <Age {...oldest_age} />}
      </Labelled>
    )
  },
  {
    id: "in_work",
    header: "In work",
    numeric: true,
    main: true,
    cell: ({ in_work, longest }) => (
      <Labelled name="in work">
        <Count of={in_work} short />
        {longest !== undefined && (
          <Link to="/tasks/$taskId" params={{ taskId: longest.task_id }} className={styles.beside}>
            oldest <When at={longest.started_at} />
          </Link>
        )}
      </Labelled>
    )
  },
  {
    id: "waiting",
    header: "Retry wait",
    numeric: true,
    main: true,
    cell: ({ next_retry_at, waiting_for_retry }) => (
      <Labelled name="waiting for retry">
        <Count of={waiting_for_retry} short />
        {next_retry_at !== null && (
          <span className={styles.beside}>
            next <When at={next_retry_at} />
          </span>
        )}
      </Labelled>
    )
  },
  {
    id: "dead",
    header: "Dead",
    numeric: true,
    main: true,
    cell: ({ dead, open, queue, settled }) => (
      <Labelled name="dead">
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
      </Labelled>
    )
  },
  {
    id: "consumers",
    header: "Consumers",
    numeric: true,
    main: true,
    cell: ({ consumers, stopped_consumers }) => (
      <Labelled name="consumers">
        <Count of={consumers} />
        {stopped_consumers > 0 && <span className={styles.beside}>{stopped_consumers} stopped</span>}
      </Labelled>
    )
  },
  { id: "flow", header: "In and out, 60 min", width: 150, main: true, cell: (row) => <Flow view={row} /> },
  {
    id: "actions",
    header: "Actions",
    main: true,
    cell: (row) => (
      <Group gap={4} wrap="nowrap" justify="end">
        <PauseButton view={row} />
      </Group>
    )
  }
]

/** On narrow screens, where there is no head of the table, a number says what it counts. */
const Labelled = ({ children, name }: { readonly children: ReactNode; readonly name: string }) => (
  <span className={styles.labelled}>
    <span className={styles.name}>{name}</span>
    {children}
  </span>
)

const Age = ({ is, seconds }: NonNullable<BoardRow["oldest_age"]>) => (
  <span className={styles.beside}>
    oldest {is === "more_than" ? ">" : "~"} {durationText(seconds * 1_000)}
  </span>
)
