import { Button, Skeleton } from "@mantine/core"
import { Link, useNavigate } from "@tanstack/react-router"
import { useState } from "react"
import { useTextSearch } from "../../../address/search.ts"
import { withQuery } from "../../../api/http.ts"
import { useLiveRefresh } from "../../../api/live.ts"
import { useTasksApi, useTasksList } from "../../../api/queries.ts"
import { useAllowed } from "../../../api/session.ts"
import type { DeadLetterGroup, DeadLetterSummary, GroupPage as Groups, LetterPage } from "../../../api/TaskTypes.ts"
import { tasksPath } from "../../../api/tasks.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { Empty } from "../../../shared/page/Empty.tsx"
import { PageHeader } from "../../../shared/page/PageHeader.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { useSettled } from "../../../shared/page/useSettled.ts"
import { DataTable } from "../../../shared/table/DataTable.tsx"
import { ReplayPlanDialog } from "../../../shared/tasks/ReplayPlanDialog.tsx"
import { CopyAs } from "../../../shared/words/CopyAs.tsx"
import { countedText } from "../../../shared/words/format.ts"
import { When } from "../../../shared/words/When.tsx"
import { ArchiveDialog } from "../archive/ArchiveDialog.tsx"
import { ExceptionMessage } from "../ExceptionMessage.tsx"
import { LetterBulk } from "../letters/LetterBulk.tsx"
import { letterColumns } from "../letters/letterColumns.tsx"
import styles from "./Group.module.css"
import { GroupTiles, isBeyond, mostGroups, notAmong } from "./GroupTiles.tsx"
import { replaysSentence } from "./replaysSentence.ts"
import { Sample } from "./Sample.tsx"

const topics = ["dead_letters"] as const
const rowsOf = ({ items }: LetterPage): ReadonlyArray<DeadLetterSummary> => items
const nothing: ReadonlySet<string> = new Set()

interface Props {
  readonly name: Pick<DeadLetterGroup, "queue_name" | "reason">
  readonly exception: string | null
}

/** Dead letters of one cause: what they have in common, and their replay in steps. */
const Group = ({ exception, name }: Props) => {
  const navigate = useNavigate()
  const mayOperate = useAllowed("tasks:operate")
  const [asked, setAsked] = useState<"replay" | "archive">()
  const [selected, setSelected] = useState(nothing)
  useLiveRefresh(topics, [tasksPath])
  const groups = useTasksApi<Groups>("/dlq/groups", { limit: mostGroups })
  // the line of the stack in the head of the page arrives with them
  const isHeadKnown = useSettled([groups])
  const group = groups.data?.groups.find(
    (one) => one.queue_name === name.queue_name && one.reason === name.reason && one.exception_type === exception
  )
  const query = {
    ...name,
    ...(exception === null ? { has_exception: "false" } : { exception_type: exception }),
    state: "dead_lettered",
    limit: 100
  }
  const list = useTasksList<LetterPage, DeadLetterSummary>("/dlq/messages", query, rowsOf)
  const { rows } = list
  const all = { ...name, exception_type: exception, state: "dead_lettered" as const }
  const number =
    group === undefined
      ? `${list.query.hasNextPage ? "More than " : ""}${countedText(rows.length, "letter")}`
      : countedText(group.count, "letter")
  const close = () => setAsked(undefined)
  return (
    <>
      <PageHeader
        title={exception ?? name.reason}
        lead={
          <>
            Open dead letters of <ForeignText>{name.queue_name}</ForeignText> for{" "}
            <code>
              <ForeignText>{name.reason}</ForeignText>
            </code>
            {group?.stack_line != null && (
              <>
                {" "}
                <code>
                  <ForeignText>{group.stack_line}</ForeignText>
                </code>
              </>
            )}
          </>
        }
        actions={
          <>
            <CopyAs address={withQuery(`${tasksPath}/dlq/messages`, query)} />
            {mayOperate && (
              <>
                <Button variant="default" disabled={rows.length === 0} onClick={() => setAsked("archive")}>
                  Archive all
                </Button>
                <Button disabled={rows.length === 0} onClick={() => setAsked("replay")}>
                  Replay in steps
                </Button>
              </>
            )}
          </>
        }
      />
      {!isHeadKnown && <Skeleton height={360} />}
      {isHeadKnown && (
        <div className={styles.stack}>
          {group?.exception_message != null && (
            <Panel title="Newest message">
              <ExceptionMessage>{group.exception_message}</ExceptionMessage>
            </Panel>
          )}
          <GroupTiles group={group} groups={groups} />
          <Panel
            title="Replays of this group"
            query={groups}
            height={20}
            empty={
              group === undefined
                ? isBeyond(groups.data)
                  ? notAmong
                  : "None yet."
                : group.replays.length === 0
                  ? "None yet."
                  : undefined
            }
          >
            {group !== undefined && <History group={group} />}
          </Panel>
          {(list.query.isPending || rows.length > 0) && <Sample letters={rows} />}
          <Panel title="Letters" query={list.query} height={240} flush>
            <DataTable
              name="group-letters"
              label="Letters of the group"
              columns={letterColumns}
              rows={rows}
              rowId={({ dlq_id }) => dlq_id}
              onOpen={({ dlq_id }) => void navigate({ to: "/dead-letters/$dlqId", params: { dlqId: dlq_id } })}
              list={list}
              {...(mayOperate && { selected, onSelect: setSelected })}
              toolbar={
                selected.size > 0 && (
                  <LetterBulk
                    letters={rows.filter(({ dlq_id }) => selected.has(dlq_id))}
                    onDone={() => setSelected(nothing)}
                  />
                )
              }
              empty={<Empty action={<AllGroups />}>No letter of this group is open any more.</Empty>}
            />
          </Panel>
        </div>
      )}
      {asked === "replay" && (
        <ReplayPlanDialog selection={{ filter: all }} onClose={close}>
          <p>
            {number} of <ForeignText>{name.queue_name}</ForeignText>. Replays before:{" "}
            {group === undefined ? "not known" : replaysSentence(group.replays)}.
          </p>
        </ReplayPlanDialog>
      )}
      {asked === "archive" && (
        <ArchiveDialog selection={{ filter: all }} onClose={close} onDone={close}>
          <p>
            {number} of <ForeignText>{name.queue_name}</ForeignText>, and those that arrive until then.
          </p>
        </ArchiveDialog>
      )}
    </>
  )
}

/** Links name the group by its queue, its reason and its exception. */
const GroupPage = () => {
  const { text } = useTextSearch()
  const queue = text("queue_name")
  const reason = text("reason")
  if (queue !== undefined && reason !== undefined)
    return <Group name={{ queue_name: queue, reason }} exception={text("exception_type") ?? null} />
  return (
    <>
      <PageHeader title="A group of dead letters" />
      <Panel>
        <Empty action={<AllGroups />}>The address does not say which group: it needs a queue and a reason.</Empty>
      </Panel>
    </>
  )
}

const AllGroups = () => (
  <Button variant="default" renderRoot={(props) => <Link {...props} to="/dead-letters" />}>
    All groups
  </Button>
)

const History = ({ group }: { readonly group: DeadLetterGroup }) => (
  <ul className={styles.replays}>
    {group.replays.map(({ failed_again, handled, last_replayed_at, replay_id, replayed }) => (
      <li key={replay_id ?? "single"}>
        {replay_id === null ? (
          <span>single letters</span>
        ) : (
          <Link to="/dead-letters/replays/$replayId" params={{ replayId: replay_id }}>
            {replay_id.slice(0, 8)}
          </Link>
        )}
        <When at={last_replayed_at} />
        <span>
          {replayed} replayed: {handled} handled, {failed_again} failed again,{" "}
          {Math.max(0, replayed - handled - failed_again)} not known
        </span>
      </li>
    ))}
  </ul>
)

export default GroupPage
