import { Button, Group, Modal, Stack } from "@mantine/core"
import { useState } from "react"
import { useApiWrite } from "../../api/queries.ts"
import { useTell } from "../../shared/change/useTell.tsx"
import { ErrorNote } from "../../shared/page/ErrorNote.tsx"
import { type ProjectDraft, ProjectForm } from "./ProjectForm.tsx"
import { projectsPath, staleAfterProjects } from "./project.ts"

interface Props {
  readonly onClose: () => void
  readonly onDone: (id: string) => void
}

const nothing: ProjectDraft = { name: "", owner_email: null, description: null, tags: [] }

export const NewProject = ({ onClose, onDone }: Props) => {
  const [draft, setDraft] = useState(nothing)
  const tell = useTell()
  const create = useApiWrite("POST", projectsPath, staleAfterProjects)
  const errors = create.error?.fields ?? []
  return (
    <Modal opened onClose={onClose} title="Create a project">
      <form
        onSubmit={(event) => {
          event.preventDefault()
          create.mutate(
            { body: draft },
            {
              onSuccess: ({ id, name }) => {
                tell({ done: `The project ${name} is made.`, audit: { type: "project", id } })
                onDone(id)
              }
            }
          )
        }}
      >
        <Stack gap="sm">
          <ProjectForm
            draft={draft}
            onChange={(change) => setDraft((before) => ({ ...before, ...change }))}
            errors={errors}
          />
          {create.error !== null && errors.length === 0 && <ErrorNote error={create.error} />}
          <Group justify="end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={create.isPending}>
              Create the project
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}
