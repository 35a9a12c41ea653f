import { Button } from "@mantine/core"
import { getRouteApi, Link } from "@tanstack/react-router"
import { useState } from "react"
import { useTextSearch } from "../../../address/search.ts"
import { useTasksApi } from "../../../api/queries.ts"
import { useAllowed } from "../../../api/session.ts"
import type { Letter } from "../../../api/TaskTypes.ts"
import { taskPath, tasksPath } from "../../../api/tasks.ts"
import { ForeignText, VisibleMarks } from "../../../shared/foreign/ForeignText.tsx"
import { LinkButton } from "../../../shared/links/LinkButton.tsx"
import { Empty } from "../../../shared/page/Empty.tsx"
import { PageHeader } from "../../../shared/page/PageHeader.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { Tabs } from "../../../shared/page/Tabs.tsx"
import { UnreadPage } from "../../../shared/page/UnreadPage.tsx"
import { JsonTree } from "../../../shared/tasks/JsonTree.tsx"
import { LetterWord } from "../../../shared/tasks/LetterWord.tsx"
import { ReplayDialog } from "../../../shared/tasks/ReplayDialog.tsx"
import { useTaskEvents } from "../../../shared/tasks/useTaskEvents.ts"
import { CopyAs } from "../../../shared/words/CopyAs.tsx"
import { CopyButton } from "../../../shared/words/CopyButton.tsx"
import { TakeBack } from "../archive/Archive.tsx"
import { ArchiveDialog } from "../archive/ArchiveDialog.tsx"
import { shortId } from "../letterName.ts"
import { Attempts } from "./Attempts.tsx"
import { DiagnosisPanel } from "./DiagnosisPanel.tsx"
import { EditTab } from "./EditTab.tsx"
import { storedProblems } from "./editing.ts"
import styles from "./Letter.module.css"
import { PayloadFitNote } from "./PayloadFitNote.tsx"

const route = getRouteApi("/operators/dead-letters/$dlqId")

/** The server looks for the outcome of a replay when it is asked. */
const untilProved = ({ replacement, replay_outcome }: Letter): number | undefined =>
  [replay_outcome, replacement?.replay_outcome].some((known) => known?.outcome === "published") ? 2_000 : undefined

/** One message that has failed for good: why, what it says, and how to repair it. */
const LetterPage = () => {
  const { dlqId } = route.useParams()
  const letter = useTasksApi<Letter>(taskPath`/dlq/messages/${dlqId}`, {}, { refreshAfter: untilProved })
  useTaskEvents(letter.data?.task_id, () => void letter.refetch())
  const { data } = letter
  if (letter.error !== null && data === undefined)
    return (
      <UnreadPage
        title="Dead letter"
        query={letter}
        missing={
          <Empty
            action={
              <LinkButton path="/dead-letters" search={{ tab: "queues" }}>
                Dead-letter queues
              </LinkButton>
            }
          >
            No dead letter has the id <ForeignText>{dlqId}</ForeignText>. If its message is still in its queue, indexing
            the queue finds it again.
          </Empty>
        }
      />
    )
  return (
    <>
      <PageHeader
        title="Dead letter"
        beside={data !== undefined && <LetterWord letter={data} />}
        lead={
          <span className={styles.id}>
            {data?.task_id != null && (
              <span className={styles.pair}>
                <span className={styles.of}>task</span> <ForeignText>{data.task_id}</ForeignText>
                <CopyButton text={data.task_id} label="Copy the id of the task" />
              </span>
            )}
            <span className={styles.pair}>
              <span className={styles.of}>dead letter</span> <ForeignText title={dlqId}>{shortId(dlqId)}</ForeignText>
              <CopyButton text={dlqId} label="Copy the id of the dead letter" />
            </span>
          </span>
        }
        areActionsLate
        actions={
          <>
            {data !== undefined && <LetterActions letter={data} />}
            <CopyAs address={tasksPath + taskPath`/dlq/messages/${dlqId}`} />
          </>
        }
      />
      <DiagnosisPanel letter={letter} />
      {data !== undefined && (
        <div className={styles.tabs}>
          <LetterTabs letter={data} />
        </div>
      )}
    </>
  )
}

const LetterTabs = ({ letter }: { readonly letter: Letter }) => {
  const mayOperate = useAllowed("tasks:operate")
  const mayEdit = mayOperate && letter.state === "dead_lettered"
  return (
    <Tabs
      tabs={[
        {
          value: "message",
          label: "Message",
          content: () => (
            <Panel title="Body" note={letter.body_encoding}>
              <JsonTree value={letter.body} label="Message" problems={storedProblems("body", letter)} />
              <PayloadFitNote fit={letter.payload_fit} />
            </Panel>
          )
        },
        ...(mayEdit ? [{ value: "edit", label: "Edit", content: () => <EditTab letter={letter} /> }] : []),
        { value: "attempts", label: "Attempts", content: () => <Attempts letter={letter} /> },
        {
          value: "headers",
          label: "Headers",
          content: () => (
            <Panel title="Headers">
              <JsonTree value={letter.headers} label="Names and values" />
            </Panel>
          )
        },
        ...(letter.exception_stack
          ? [
              {
                value: "stack",
                label: "Stack",
                content: () => (
                  <Panel title="Stack">
                    <pre className={styles.stack}>
                      <VisibleMarks text={letter.exception_stack ?? ""} />
                    </pre>
                  </Panel>
                )
              }
            ]
          : [])
      ]}
    />
  )
}

/** The ways on that the state of the letter leaves. */
const LetterActions = ({ letter }: { readonly letter: Letter }) => {
  const mayOperate = useAllowed("tasks:operate")
  const { change } = useTextSearch()
  const [asked, setAsked] = useState<"replay" | "force" | "archive">()
  const { diagnosis, dlq_id, source_queue_name, state, task_id } = letter
  const close = () => setAsked(undefined)
  return (
    <>
      {mayOperate && state === "dead_lettered" && (
        <>
          <Button onClick={() => setAsked("replay")}>Replay</Button>
          <Button variant="default" onClick={() => change({ tab: "edit" })}>
            Edit
          </Button>
        </>
      )}
      {mayOperate && (state === "replay_unknown" || state === "replayed") && (
        <Button variant="default" onClick={() => setAsked("force")}>
          Replay in any case
        </Button>
      )}
      {mayOperate && (state === "dead_lettered" || state === "replay_unknown") && (
        <Button variant="default" onClick={() => setAsked("archive")}>
          Archive
        </Button>
      )}
      {state === "archived" && <TakeBack dlqId={dlq_id} />}
      {task_id !== null && (
        <Button
          variant="default"
          renderRoot={(props) => <Link {...props} to="/tasks/$taskId" params={{ taskId: task_id }} />}
        >
          Task
        </Button>
      )}
      {(asked === "replay" || asked === "force") && (
        <ReplayDialog
          dlqId={dlq_id}
          queue={source_queue_name}
          of={task_id ?? dlq_id}
          force={asked === "force"}
          warnings={diagnosis.replay.warnings}
          onClose={close}
        />
      )}
      {asked === "archive" && <ArchiveDialog selection={{ ids: [dlq_id] }} onClose={close} onDone={close} />}
    </>
  )
}

export default LetterPage
