import { TagsInput, Textarea, TextInput } from "@mantine/core"
import type { FieldError } from "../../api/ApiError.ts"

export interface ProjectDraft {
  readonly name: string
  readonly owner_email: string | null
  readonly description: string | null
  readonly tags: ReadonlyArray<string>
}

interface Props {
  readonly draft: ProjectDraft
  readonly onChange: (change: Partial<ProjectDraft>) => void
  readonly errors?: ReadonlyArray<FieldError>
}

const orNull = (text: string): string | null => (text === "" ? null : text)

/** What a project is called, and who answers for it. */
export const ProjectForm = ({ draft, errors = [], onChange }: Props) => {
  const errorOf = (name: string) => errors.find(({ field }) => field === name)?.message
  return (
    <>
      <TextInput
        label="Name"
        value={draft.name}
        onChange={({ currentTarget }) => onChange({ name: currentTarget.value })}
        error={errorOf("name")}
        required
        data-autofocus
      />
      <TextInput
        label="Owner"
        description="The address of whoever answers for it."
        value={draft.owner_email ?? ""}
        onChange={({ currentTarget }) => onChange({ owner_email: orNull(currentTarget.value) })}
        error={errorOf("owner_email")}
      />
      <Textarea
        label="Description"
        value={draft.description ?? ""}
        onChange={({ currentTarget }) => onChange({ description: orNull(currentTarget.value) })}
        error={errorOf("description")}
        autosize
      />
      <TagsInput label="Tags" value={[...draft.tags]} onChange={(tags) => onChange({ tags })} error={errorOf("tags")} />
    </>
  )
}
