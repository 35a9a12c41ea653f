import { Button, Group } from "@mantine/core"
import { useState } from "react"
import { useTasksWrite } from "../../../api/queries.ts"
import type { Letter } from "../../../api/TaskTypes.ts"
import { taskPath } from "../../../api/tasks.ts"
import { JsonEditor } from "../../../shared/editor/JsonEditor.tsx"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { Segments } from "../../../shared/page/Segments.tsx"
import { flatten } from "../../../shared/tasks/flatten.ts"
import { FieldDiff } from "../../../shared/words/FieldDiff.tsx"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import { EditDialog } from "./EditDialog.tsx"
import { type Part, partsOf, problemsIn, readJson, valueOf } from "./editing.ts"
import styles from "./Letter.module.css"
import { Mistakes } from "./Mistakes.tsx"

const editorHeight = 380

interface Checked {
  readonly target_queue_name: string
}

/** Edits the message, shows the difference, has it checked, and replays it as a new record. */
export const EditTab = ({ letter }: { readonly letter: Letter }) => {
  const parts = partsOf(letter)
  const [part, setPart] = useState<Part>(parts[0] ?? "body")
  const before = valueOf(letter, part)
  const [text, setText] = useState(() => JSON.stringify(before, null, 2))
  const [isAsking, setAsking] = useState(false)
  const check = useTasksWrite<Checked>()
  const read = readJson(text)
  const after = "value" in read ? read.value : undefined
  const isSame = after !== undefined && JSON.stringify(after) === JSON.stringify(before)
  const become = (written: string) => {
    setText(written)
    check.reset()
  }
  return (
    <div className={styles.edit}>
      <Panel
        title="Edit"
        actions={
          parts.length > 1 && (
            <Segments
              aria-label="What is edited"
              data={[
                { value: "payload", label: "Payload" },
                { value: "body", label: "Whole message" }
              ]}
              value={part}
              onChange={(value) => {
                const next = value === "body" ? "body" : "payload"
                setPart(next)
                become(JSON.stringify(valueOf(letter, next), null, 2))
              }}
            />
          )
        }
      >
        <JsonEditor
          key={part}
          label={part === "payload" ? "Payload" : "Whole message"}
          value={text}
          onChange={become}
          error={"problem" in read ? read.problem : undefined}
          height={editorHeight}
          problems={problemsIn(part, check.error)}
        />
      </Panel>
      <Panel title="Difference">
        {after !== undefined ? (
          <FieldDiff before={flatten(before)} after={flatten(after)} />
        ) : (
          <p>It is shown once the text is JSON.</p>
        )}
        {check.error !== null && <Mistakes error={check.error} />}
        {check.data !== undefined && (
          <p>
            <StatusWord meaning="idle">envelope checked</StatusWord> It is a message that{" "}
            <ForeignText>{check.data.target_queue_name}</ForeignText> takes. The payload was not compared with the
            schema of its handler, which only the worker knows: a payload of the wrong form fails again once it is
            replayed.
          </p>
        )}
        <Group gap={8} mt="sm">
          <Button
            variant="default"
            disabled={after === undefined}
            loading={check.isPending}
            onClick={() =>
              check.mutate({ path: taskPath`/dlq/messages/${letter.dlq_id}/edits/check`, body: { [part]: after } })
            }
          >
            Check
          </Button>
          <Button disabled={after === undefined || isSame} onClick={() => setAsking(true)}>
            Replay edited
          </Button>
          <Button
            variant="subtle"
            color="gray"
            disabled={isSame}
            onClick={() => become(JSON.stringify(before, null, 2))}
          >
            Undo all
          </Button>
        </Group>
      </Panel>
      {isAsking && after !== undefined && (
        <EditDialog letter={letter} part={part} before={before} after={after} onClose={() => setAsking(false)} />
      )}
    </div>
  )
}
