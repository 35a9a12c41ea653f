import { Textarea } from "@mantine/core"
import { type ReactNode, useState } from "react"
import { useApiWrite } from "../../../api/queries.ts"
import { useTell } from "../../../shared/change/useTell.tsx"
import { ChangeDialog } from "../../../shared/dialogs/ChangeDialog.tsx"
import { type Asked, askedPath } from "./asked.ts"

interface Props {
  readonly asked: Asked
  readonly title: string
  readonly action: string
  readonly path: `${typeof askedPath}/:id/${"grant-model" | "refuse"}`
  /** Other addresses whose content the answer changes. */
  readonly changes?: ReadonlyArray<string>
  readonly isRequired?: boolean
  readonly done: string
  readonly onClose: () => void
  readonly children: ReactNode
}

/** Answers a holder who asks for more, with a sentence that the holder reads. */
export const AnswerDialog = ({ asked, changes = [], children, isRequired = false, path, ...dialog }: Props) => {
  const [answer, setAnswer] = useState("")
  const tell = useTell()
  const send = useApiWrite("POST", path, [askedPath, ...changes])
  const ofAnswer = send.error?.fields.find(({ field }) => field === "answer")?.message
  const { action, done, onClose, title } = dialog
  const text = answer.trim()
  return (
    <ChangeDialog
      title={title}
      action={action}
      isBusy={send.isPending}
      error={ofAnswer === undefined ? send.error : null}
      onClose={onClose}
      onConfirm={() =>
        send.mutate(
          { params: { id: asked.id }, body: text === "" && !isRequired ? {} : { answer: text } },
          {
            onSuccess: () => {
              tell({ done, audit: { type: "key", id: asked.key_id } })
              onClose()
            }
          }
        )
      }
    >
      {children}
      <Textarea
        label="Answer"
        description="The holder reads it."
        value={answer}
        onChange={({ currentTarget }) => setAnswer(currentTarget.value)}
        error={ofAnswer}
        required={isRequired}
        autosize
        data-autofocus
      />
    </ChangeDialog>
  )
}
