import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { AnswerDialog } from "./AnswerDialog.tsx"
import { type Asked, askedPath, nameOf } from "./asked.ts"

interface Props {
  readonly asked: Asked
  readonly onClose: () => void
}

/** Says no, with a sentence for the holder. */
export const RefuseDialog = ({ asked, onClose }: Props) => (
  <AnswerDialog
    asked={asked}
    title="Refuse a raise"
    action="Refuse"
    path={`${askedPath}/:id/refuse`}
    isRequired
    done="It is refused. The holder sees your answer."
    onClose={onClose}
  >
    <p>
      <ForeignText>{nameOf(asked)}</ForeignText> asks: <ForeignText>{asked.reason}</ForeignText>
    </p>
  </AnswerDialog>
)
