import { Button } from "@mantine/core"
import { Link, useNavigate } from "@tanstack/react-router"
import { useTasksList } from "../../../api/queries.ts"
import type { DeadLetterGroup, GroupPage } from "../../../api/TaskTypes.ts"
import { Sparkline } from "../../../shared/charts/Sparkline.tsx"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { Empty } from "../../../shared/page/Empty.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { type Column, DataTable } from "../../../shared/table/DataTable.tsx"
import { Count } from "../../../shared/words/Amounts.tsx"
import { When } from "../../../shared/words/When.tsx"
import styles from "../letters/DeadLetters.module.css"
import { shortVersionText, versionText } from "./GroupTiles.tsx"
import { groupSearch } from "./groupSearch.ts"
import { replaysSentence } from "./replaysSentence.ts"

const rowsOf = ({ groups }: GroupPage): ReadonlyArray<DeadLetterGroup> => groups

/** Returns the failure in the words of the group's newest letter. */
const saidOf = ({ exception_message, reason, stack_line }: DeadLetterGroup): string =>
  exception_message ?? stack_line ?? reason

const columns: ReadonlyArray<Column<DeadLetterGroup>> = [
  {
    id: "cause",
    header: "Cause",
    csv: ["exception_type", "exception_message"],
    cell: (group) => (
      <span className={styles.cause}>
        <Link to="/dead-letters/group" search={groupSearch(group)}>
          <ForeignText>{group.exception_type ?? group.reason}</ForeignText>
        </Link>
        <ForeignText className={styles.message} title={saidOf(group)}>
          {saidOf(group)}
        </ForeignText>
      </span>
    )
  },
  {
    id: "count",
    header: "Open",
    numeric: true,
    main: true,
    csv: ["count"],
    cell: ({ count }) => <Count of={count} short />
  },
  {
    id: "queue",
    header: "Queue",
    main: true,
    csv: ["queue_name"],
    cell: ({ queue_name }) => <ForeignText>{queue_name}</ForeignText>
  },
  {
    id: "reason",
    header: "Reason",
    main: true,
    csv: ["reason"],
    cell: ({ reason }) => (
      <code>
        <ForeignText>{reason}</ForeignText>
      </code>
    )
  },
  {
    id: "place",
    header: "Thrown at",
    hidden: true,
    csv: ["stack_line"],
    cell: ({ stack_line }) => <ForeignText>{stack_line ?? "–"}</ForeignText>
  },
  {
    id: "trend",
    header: "24 h",
    width: 130,
    csv: ({ trend }) => ({ trend: trend.counts }),
    cell: ({ count, trend }) => (
      <Sparkline
        values={trend.counts}
        label={`Open letters by the hour of the last 24: at most ${Math.max(...trend.counts)}, ${count} in all`}
      />
    )
  },
  {
    id: "first",
    header: "First seen",
    csv: ["first_seen_at"],
    cell: ({ first_seen_at }) => <When at={first_seen_at} />
  },
  {
    id: "last",
    header: "Last seen",
    main: true,
    labelled: true,
    csv: ["last_seen_at"],
    cell: ({ last_seen_at }) => <When at={last_seen_at} />
  },
  {
    id: "version",
    header: "Version",
    csv: ["first_version", "last_version"],
    cell: (group) => <ForeignText title={versionText(group)}>{shortVersionText(group)}</ForeignText>
  },
  {
    id: "replays",
    header: "Replays before",
    csv: ["replays"],
    cell: ({ replays }) => {
      const sentence = replaysSentence(replays)
      return <span title={sentence}>{sentence}</span>
    }
  }
]

/** The open dead letters by their causes, those that came last first. */
export const Groups = () => {
  const list = useTasksList<GroupPage, DeadLetterGroup>("/dlq/groups", { limit: 100 }, rowsOf)
  const navigate = useNavigate()
  return (
    <Panel query={list.query} height={300} flush>
      <DataTable
        name="groups"
        label="Groups of dead letters"
        columns={columns}
        rows={list.rows}
        rowId={({ exception_type, queue_name, reason }) => JSON.stringify([queue_name, reason, exception_type])}
        onOpen={(group) => void navigate({ to: "/dead-letters/group", search: groupSearch(group) })}
        list={list}
        empty={
          <Empty
            action={
              <Button variant="default" renderRoot={(props) => <Link {...props} to="/tasks/board" />}>
                Look at the board
              </Button>
            }
          >
            No dead letter is open. A message that fails for good appears here with its cause.
          </Empty>
        }
      />
    </Panel>
  )
}
