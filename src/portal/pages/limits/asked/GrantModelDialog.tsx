import { Textarea } from "@mantine/core"
import { useState } from "react"
import { useApi, useApiWrite } from "../../../api/queries.ts"
import { useTell } from "../../../shared/change/useTell.tsx"
import { ChangeDialog } from "../../../shared/dialogs/ChangeDialog.tsx"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { PathLink } from "../../../shared/links/PathLink.tsx"
import { type Asked, askedPath, nameOf } from "./asked.ts"

interface Props {
  readonly asked: Asked
  readonly model: string
  readonly onClose: () => void
}

const keyPath = "/admin-ui/admin/keys/:id"

/** Grants the model that a holder asks for. A layer that refuses it is named by the server, and changed at the policies. */
export const GrantModelDialog = ({ asked, model, onClose }: Props) => {
  const [answer, setAnswer] = useState("")
  const key = useApi(keyPath, { params: { id: asked.key_id } })
  const tell = useTell()
  const grant = useApiWrite("POST", "/admin-ui/admin/limits/raise-requests/:id/grant-model", [askedPath, keyPath])
  const ofAnswer = grant.error?.fields.find(({ field }) => field === "answer")?.message
  const own = key.data?.policy.allowed_models
  return (
    <ChangeDialog
      title="Grant a model"
      action="Grant it"
      isBusy={grant.isPending}
      error={ofAnswer === undefined ? grant.error : null}
      onClose={onClose}
      onConfirm={() =>
        grant.mutate(
          { params: { id: asked.id }, body: answer.trim() === "" ? {} : { answer: answer.trim() } },
          {
            onSuccess: () => {
              tell({
                done: "It is granted. The holder sees it, and your answer.",
                audit: { type: "key", id: asked.key_id }
              })
              onClose()
            }
          }
        )
      }
    >
      <p>
        <ForeignText>{nameOf(asked)}</ForeignText> asks for the model <ForeignText>{model}</ForeignText>:{" "}
        <ForeignText>{asked.reason}</ForeignText>
      </p>
      <p>
        The model is added to <code>allowed_models</code> of the key’s own policy, unless that allows it already, and
        stays there until somebody takes it out.
        {own !== undefined && (
          <>
            {" "}
            It has now: <ForeignText>{own === null ? "all models" : own.join(", ") || "none"}</ForeignText>.
          </>
        )}{" "}
        A layer above the key that refuses the model must be changed first:{" "}
        <PathLink path={`/keys/${asked.key_id}?tab=policy`}>the effective policy of the key</PathLink>.
      </p>
      <Textarea
        label="Answer"
        description="The holder reads it."
        value={answer}
        onChange={({ currentTarget }) => setAnswer(currentTarget.value)}
        error={ofAnswer}
        autosize
        data-autofocus
      />
    </ChangeDialog>
  )
}
