import { Input, Skeleton } from "@mantine/core"
import { type ReactNode, useId } from "react"
import { laterFile, useLaterPart } from "../../api/laterFile.ts"
import styles from "./JsonEditor.module.css"
import type { JsonProblem } from "./problems.ts"

/** The editor is a library of its own, which arrives with the first page that edits JSON. */
const codeMirror = laterFile(() => import("./CodeMirror.tsx"))

interface Props {
  readonly label: string
  readonly description?: ReactNode
  /** The text as it is typed. It need not be JSON yet. */
  readonly value: string
  readonly onChange?: (text: string) => void
  /** Under the editor: what the server refused. */
  readonly error?: ReactNode
  /**
   * Marked where they are, such as the errors of a schema. Mistakes in the JSON itself are marked without them. Another
   * list draws the marks again at once, so it must be the same one while nothing has changed.
   */
  readonly problems?: ReadonlyArray<JsonProblem>
  /** In pixels. Longer texts scroll. */
  readonly height?: number
}

const none: ReadonlyArray<JsonProblem> = []

/** Edits JSON: colours, and mistakes at their place. Tab leaves it, as it leaves every field. */
export const JsonEditor = ({ description, error, height = 200, label, onChange, problems = none, value }: Props) => {
  const id = useId()
  const CodeMirror = useLaterPart(codeMirror)?.default
  return (
    <div className={styles.field}>
      <Input.Label id={`${id}label`}>{label}</Input.Label>
      {description !== undefined && <Input.Description id={`${id}about`}>{description}</Input.Description>}
      <div className={styles.editor} style={{ height }} data-invalid={error !== undefined || undefined}>
        {CodeMirror === undefined ? (
          <Skeleton height={height} />
        ) : (
          <CodeMirror
            labelledBy={`${id}label`}
            describedBy={`${description === undefined ? "" : `${id}about `}${error === undefined ? "" : `${id}error`}`}
            value={value}
            onChange={onChange}
            problems={problems}
          />
        )}
      </div>
      {error !== undefined && <Input.Error id={`${id}error`}>{error}</Input.Error>}
    </div>
  )
}
