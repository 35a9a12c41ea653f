import { MultiSelect, Switch, TagsInput, TextInput } from "@mantine/core"
import type { FieldError } from "../../../api/ApiError.ts"
import { useApi } from "../../../api/queries.ts"
import { useAllowed } from "../../../api/session.ts"
import { TimeInput } from "../../../shared/dialogs/TimeInput.tsx"
import { FieldName } from "../../../shared/fields/FieldName.tsx"
import { shownText } from "../../../shared/foreign/marks.ts"
import { ProjectPicker } from "../../../shared/keys/ProjectPicker.tsx"
import type { Draft } from "./draft.ts"
import styles from "./NewKeyPage.module.css"

interface Props {
  readonly draft: Draft
  readonly onChange: (change: Partial<Draft>) => void
  readonly errors: ReadonlyArray<FieldError>
}

/** Whose key it is. */
export const OwnerStep = ({ draft, errors, onChange }: Props) => {
  const maySee = useAllowed("usage:read")
  const services = useApi("/admin-ui/admin/services", {}, { enabled: maySee })
  const errorOf = (name: string) => errors.find(({ field }) => field === name)?.message
  return (
    <div className={styles.fields}>
      <TextInput
        label="Name"
        description="By which people know it, such as “ada, laptop”."
        value={draft.name}
        onChange={({ currentTarget }) => onChange({ name: currentTarget.value })}
        error={errorOf("name")}
        autoFocus
      />
      <ProjectPicker
        label="Project"
        description="Its layer, its services and its budget hold for the key."
        placeholder="none: an individual key"
        value={draft.project_id}
        onChange={(project_id) => onChange({ project_id })}
        clearable
        error={errorOf("project_id")}
      />
      {draft.project_id === null && (
        <MultiSelect
          label="Services"
          description="Without any, only policies restrict which services the key may call."
          data={services.data?.map(({ name }) => ({ value: name, label: shownText(name) })) ?? []}
          value={[...draft.service_names]}
          onChange={(service_names) => onChange({ service_names })}
          searchable
          clearable
          error={errorOf("service_names") ?? services.error?.message}
        />
      )}
      <TextInput
        label="Owner"
        description="The address of whoever answers for it."
        type="email"
        value={draft.owner_email}
        onChange={({ currentTarget }) => onChange({ owner_email: currentTarget.value })}
        error={errorOf("owner_email")}
      />
      <TextInput
        label="Team"
        description="The policy layer of this team holds for the key."
        value={draft.team_id}
        onChange={({ currentTarget }) => onChange({ team_id: currentTarget.value })}
        error={errorOf("team_id")}
      />
      <TagsInput
        label="Tags"
        description="For finding it."
        value={[...draft.tags]}
        onChange={(tags) => onChange({ tags })}
        error={errorOf("tags")}
      />
      <TextInput
        label="Description"
        description="What it is for."
        value={draft.description}
        onChange={({ currentTarget }) => onChange({ description: currentTarget.value })}
        error={errorOf("description")}
      />
      <TimeInput
        label={<FieldName name="expires_at" />}
        description="From then on its requests are refused."
        value={draft.expires_at}
        onChange={(expires_at) => onChange({ expires_at })}
        error={errorOf("expires_at")}
      />
      <TimeInput
        label={<FieldName name="rotation_due_at" />}
        description="A reminder to give it a new secret. The key goes on to work."
        value={draft.rotation_due_at}
        onChange={(rotation_due_at) => onChange({ rotation_due_at })}
        error={errorOf("rotation_due_at")}
      />
      <Switch
        label={<code>holder_rotation</code>}
        description="Whoever holds the key may give it a new secret."
        checked={draft.holder_rotation}
        onChange={({ currentTarget }) => onChange({ holder_rotation: currentTarget.checked })}
      />
    </div>
  )
}
