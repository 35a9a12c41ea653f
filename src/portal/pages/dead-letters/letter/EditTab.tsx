import { Button, Group } from "@mantine/core"
import { useEffect, useMemo, useRef, useState } from "react"
import { useTasksCheck } from "../../../api/queries.ts"
import type { CheckedEdit, Letter } from "../../../api/TaskTypes.ts"
import { taskPath } from "../../../api/tasks.ts"
import { JsonEditor } from "../../../shared/editor/JsonEditor.tsx"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { Segments } from "../../../shared/page/Segments.tsx"
import { flatten } from "../../../shared/tasks/flatten.ts"
import { FieldDiff } from "../../../shared/words/FieldDiff.tsx"
import { StatusWord } from "../../../shared/words/StatusWord.tsx"
import { EditDialog } from "./EditDialog.tsx"
import { type Part, partsOf, problemsIn, readJson, storedProblems, valueOf } from "./editing.ts"
import styles from "./Letter.module.css"
import { Mistakes } from "./Mistakes.tsx"
import { PayloadFitNote } from "./PayloadFitNote.tsx"

const editorHeight = 380

/** Edits the message, shows the difference, has it checked, and replays it as a new record. */
export const EditTab = ({ letter }: { readonly letter: Letter }) => {
  const parts = partsOf(letter)
  const [part, setPart] = useState<Part>(parts[0] ?? "body")
  const before = valueOf(letter, part)
  const [text, setText] = useState(() => JSON.stringify(before, null, 2))
  const [isAsking, setAsking] = useState(false)
  const check = useTasksCheck<CheckedEdit>()
  const read = readJson(text)
  const after = "value" in read ? read.value : undefined
  const isSame = after !== undefined && JSON.stringify(after) === JSON.stringify(before)
  const found = check.error?.fields ?? check.data?.fields
  const problems = useMemo(
    () => (found !== undefined ? problemsIn(part, found) : isSame ? storedProblems(part, letter) : []),
    [found, isSame, letter, part]
  )
  const checkThen = (onSuccess: () => void) =>
    check.mutate({ path: taskPath`/dlq/messages/${letter.dlq_id}/edits/check`, body: { [part]: after } }, { onSuccess })
  const editor = useRef<HTMLDivElement>(null)
  // A phone would show the tab without its editor. The braces matter: newer browsers return a promise from
  // scrollIntoView, which React would call as the cleanup of the effect.
  useEffect(() => {
    editor.current?.scrollIntoView({ block: "nearest" })
  }, [])
  const become = (written: string) => {
    setText(written)
    check.reset()
  }
  return (
    <div ref={editor} className={styles.edit}>
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
          problems={problems}
        />
      </Panel>
      <Panel title="Difference">
        {after !== undefined ? (
          <FieldDiff isJson before={flatten(before)} after={flatten(after)} />
        ) : (
          <p>It is shown once the text is JSON.</p>
        )}
        {check.error !== null && <Mistakes error={check.error} />}
        {check.data !== undefined && (
          <p>
            <StatusWord meaning="good">envelope checked</StatusWord> It is a message for{" "}
            <ForeignText>{check.data.target_queue_name}</ForeignText>.
          </p>
        )}
        {check.data !== undefined && <PayloadFitNote fit={check.data} />}
        <Group gap={8} mt="sm">
          <Button
            variant="default"
            disabled={after === undefined}
            loading={check.isPending}
            onClick={() => checkThen(() => {})}
          >
            Check
          </Button>
          <Button disabled={after === undefined || isSame} onClick={() => checkThen(() => setAsking(true))}>
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
      {isAsking && after !== undefined && check.data !== undefined && (
        <EditDialog
          letter={letter}
          part={part}
          before={before}
          after={after}
          fit={check.data}
          onClose={() => setAsking(false)}
        />
      )}
    </div>
  )
}
