import { useApi } from "../../../api/queries.ts"
import { ForeignText } from "../../../shared/foreign/ForeignText.tsx"
import { PathLink } from "../../../shared/links/PathLink.tsx"
import { AnswerDialog } from "./AnswerDialog.tsx"
import { type Asked, askedPath, nameOf } from "./asked.ts"

interface Props {
  readonly asked: Asked
  readonly model: string
  readonly onClose: () => void
}

const keyPath = "/admin-ui/admin/keys/:id"
const changes = [keyPath]

/** Grants the model that a holder asks for. A layer that refuses it is named by the server, and changed at the policies. */
export const GrantModelDialog = ({ asked, model, onClose }: Props) => {
  const key = useApi(keyPath, { params: { id: asked.key_id } })
  const own = key.data?.policy.allowed_models
  return (
    <AnswerDialog
      asked={asked}
      title="Grant a model"
      action="Grant it"
      path={`${askedPath}/:id/grant-model`}
      changes={changes}
      done="It is granted. The holder sees it, and your answer."
      onClose={onClose}
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
    </AnswerDialog>
  )
}
