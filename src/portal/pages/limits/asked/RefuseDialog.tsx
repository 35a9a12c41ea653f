import { Textarea } from "@mantine/core"
import { useState } from "react"
import { useApiWrite } from "../../../api/queries.ts"
import { useTell } from "../../../shared/change/useTell.tsx"
import { ChangeDialog } from "../../../shared/dialogs/ChangeDialog.tsx"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { type Asked, askedPath, nameOf } from "./asked.ts"

interface Props {
  readonly asked: Asked
  readonly onClose: () => void
}

/** Says no, with a sentence for the holder. */
export const RefuseDialog = ({ asked, onClose }: Props) => {
  const [answer, setAnswer] = useState("")
  const tell = useTell()
  const refuse = useApiWrite("POST", "/admin-ui/admin/limits/raise-requests/:id/refuse", [askedPath])
  const ofAnswer = refuse.error?.fields.find(({ field }) => field === "answer")?.message
  return (
    <ChangeDialog
      title="Refuse a raise"
      action="Refuse"
      isBusy={refuse.isPending}
      error={ofAnswer === undefined ? refuse.error : null}
      onClose={onClose}
      onConfirm={() =>
        refuse.mutate(
          { params: { id: asked.id }, body: { answer: answer.trim() } },
          {
            onSuccess: () => {
              tell({ done: "It is refused. The holder sees your answer.", audit: { type: "key", id: asked.key_id } })
              onClose()
            }
          }
        )
      }
    >
      <p>
        <ForeignText>{nameOf(asked)}</ForeignText> asks: <ForeignText>{asked.reason}</ForeignText>
      </p>
      <Textarea
        label="Answer"
        description="The holder reads it."
        value={answer}
        onChange={({ currentTarget }) => setAnswer(currentTarget.value)}
        error={ofAnswer}
        required
        autosize
        data-autofocus
      />
    </ChangeDialog>
  )
}
