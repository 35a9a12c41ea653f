import { Button } from "@mantine/core"
import { useState } from "react"
import type { FieldError } from "../../../api/ApiError.ts"
import { useApi } from "../../../api/queries.ts"
import { useAllowed } from "../../../api/session.ts"
import { DraftDialog } from "../../../shared/change/DraftDialog.tsx"
import { LinkButton } from "../../../shared/links/LinkButton.tsx"
import { Panel } from "../../../shared/page/Panel.tsx"
import { EffectiveTable } from "../../../shared/policy/EffectiveTable.tsx"
import { changedValues, type PolicyValues } from "../../../shared/policy/fields.ts"
import { ImpactNote } from "../../../shared/policy/Impact.tsx"
import { PolicyForm } from "../../../shared/policy/PolicyForm.tsx"
import { ChangeKey } from "../actions/ChangeKey.tsx"
import { type Key, keyName } from "../words/key.ts"

/** What holds for a key, and which layer set it. */
export const KeyPolicy = ({ of: key }: { readonly of: Key }) => {
  const mayEdit = useAllowed("policies:update") && key.revoked_at === null
  const [isEditing, setEditing] = useState(false)
  const effective = useApi("/admin-ui/admin/policy/effective", { query: { key_id: key.id } })
  return (
    <Panel
      title="Effective policy"
      note="its own and that of every layer above it: the strictest value of each, unless an exception raises it"
      query={effective}
      height={260}
      flush
      actions={
        mayEdit && (
          <>
            <LinkButton path="/policies/simulate" search={{ key_id: key.id }}>
              Try it out
            </LinkButton>
            <Button onClick={() => setEditing(true)}>Edit its own policy</Button>
          </>
        )
      }
    >
      {effective.data !== undefined && <EffectiveTable effective={effective.data} />}
      {isEditing && <EditPolicy of={key} onClose={() => setEditing(false)} />}
    </Panel>
  )
}

interface EditProps {
  readonly of: Key
  readonly onClose: () => void
}

const EditPolicy = ({ of, onClose }: EditProps) => {
  // what the person saw when the form opened, also if the key changes meanwhile
  const [key] = useState(of)
  const [draft, setDraft] = useState<PolicyValues>(key.policy)
  const [isReviewing, setReviewing] = useState(false)
  const [errors, setErrors] = useState<ReadonlyArray<FieldError>>([])
  const changes = changedValues(key.policy, draft)
  if (isReviewing) {
    return (
      <ChangeKey
        base={key}
        changes={{ policy: changes }}
        onClose={() => setReviewing(false)}
        onRefused={(fields) => {
          setErrors(fields)
          setReviewing(false)
        }}
        done={`The policy of ${keyName(key)} is changed.`}
        onDone={onClose}
      >
        <ImpactNote proposal={{ key_id: key.id, policy: changes }} />
      </ChangeKey>
    )
  }
  return (
    <DraftDialog
      title={`The policy of ${keyName(key)}`}
      size={1000}
      isChanged={Object.keys(changes).length > 0}
      onReview={() => setReviewing(true)}
      onClose={onClose}
    >
      <p>Layers above the key can only make it stricter. An empty field restricts nothing.</p>
      <PolicyForm
        values={draft}
        before={key.policy}
        errors={errors}
        onChange={(name, value) => setDraft((before) => ({ ...before, [name]: value }))}
      />
    </DraftDialog>
  )
}
