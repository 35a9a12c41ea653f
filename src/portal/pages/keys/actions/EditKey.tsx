import { Switch, TagsInput, Textarea, TextInput } from "@mantine/core"
import { useState } from "react"
import type { FieldError } from "../../../api/ApiError.ts"
import type { BodyOf } from "../../../api/Endpoints.ts"
import { DraftDialog } from "../../../shared/change/DraftDialog.tsx"
import { TimeInput } from "../../../shared/dialogs/TimeInput.tsx"
import { FieldName } from "../../../shared/fields/FieldName.tsx"
import { type Key, keyName } from "../words/key.ts"
import { ChangeKey } from "./ChangeKey.tsx"

type KeyPatch = BodyOf<"PATCH", "/admin-ui/admin/keys/:id">
type Draft = Pick<
  Key,
  "name" | "description" | "owner_email" | "tags" | "team_id" | "expires_at" | "rotation_due_at" | "holder_rotation"
>

interface Props {
  readonly of: Key
  readonly onClose: () => void
}

const draftOf = (key: Key): Draft => ({
  name: key.name,
  description: key.description,
  owner_email: key.owner_email,
  tags: key.tags,
  team_id: key.team_id,
  expires_at: key.expires_at,
  rotation_due_at: key.rotation_due_at,
  holder_rotation: key.holder_rotation
})

const changesOf = (before: Draft, after: Draft): KeyPatch => {
  const was: Readonly<Record<string, unknown>> = { ...before }
  return Object.fromEntries(
    Object.entries(after).filter(([name, value]) => JSON.stringify(was[name]) !== JSON.stringify(value))
  )
}

const texts = [
  ["name", "Name", "By which people know it."],
  ["owner_email", "Owner", "The address of whoever answers for it."],
  ["team_id", "Team", "Its policy layer holds for the key."]
] as const

/** Changes what a key is called, whom it belongs to, and when it ends. */
export const EditKey = ({ of, onClose }: Props) => {
  // what the person saw when the form opened, also if the key changes meanwhile
  const [key] = useState(of)
  const [draft, setDraft] = useState(() => draftOf(key))
  const [isReviewing, setReviewing] = useState(false)
  const [errors, setErrors] = useState<ReadonlyArray<FieldError>>([])
  const errorOf = (name: string) => errors.find(({ field }) => field === name)?.message
  const refuse = (fields: ReadonlyArray<FieldError>) => {
    setErrors(fields)
    setReviewing(false)
  }
  const set = (change: Partial<Draft>) => setDraft((before) => ({ ...before, ...change }))
  const changes = changesOf(draftOf(key), draft)
  if (isReviewing) {
    return (
      <ChangeKey
        base={key}
        changes={changes}
        onClose={() => setReviewing(false)}
        onRefused={refuse}
        done={`${keyName(key)} is changed.`}
        onDone={onClose}
      />
    )
  }
  return (
    <DraftDialog
      title={`Edit ${keyName(key)}`}
      isChanged={Object.keys(changes).length > 0}
      onReview={() => setReviewing(true)}
      onClose={onClose}
    >
      {texts.map(([name, label, help], place) => (
        <TextInput
          key={name}
          label={label}
          description={help}
          value={draft[name] ?? ""}
          onChange={({ currentTarget }) => set({ [name]: currentTarget.value === "" ? null : currentTarget.value })}
          error={errorOf(name)}
          {...(place === 0 && { "data-autofocus": true })}
        />
      ))}
      <Textarea
        label="Description"
        value={draft.description ?? ""}
        onChange={({ currentTarget }) => set({ description: currentTarget.value === "" ? null : currentTarget.value })}
        error={errorOf("description")}
        autosize
      />
      <TagsInput label="Tags" value={[...draft.tags]} onChange={(tags) => set({ tags })} error={errorOf("tags")} />
      <TimeInput
        label={<FieldName name="expires_at" />}
        description="From then on its requests are refused."
        value={draft.expires_at}
        onChange={(expires_at) => set({ expires_at })}
        error={errorOf("expires_at")}
      />
      <TimeInput
        label={<FieldName name="rotation_due_at" />}
        description="A reminder. The key goes on to work."
        value={draft.rotation_due_at}
        onChange={(rotation_due_at) => set({ rotation_due_at })}
        error={errorOf("rotation_due_at")}
      />
      <Switch
        label={<code>holder_rotation</code>}
        description="Whoever holds the key may give it a new secret."
        checked={draft.holder_rotation}
        onChange={({ currentTarget }) => set({ holder_rotation: currentTarget.checked })}
        error={errorOf("holder_rotation")}
      />
    </DraftDialog>
  )
}
