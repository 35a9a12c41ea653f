import { Group } from "@mantine/core"
import { useApiWrite } from "../../api/queries.ts"
import { useTell } from "../../shared/change/useTell.tsx"
import { ChangeDialog } from "../../shared/dialogs/ChangeDialog.tsx"
import { LinkButton } from "../../shared/links/LinkButton.tsx"
import { type Project, projectPath, staleAfterProjects } from "./project.ts"

interface Props {
  readonly of: Project
  readonly onClose: () => void
  readonly onDone: () => void
}

/** Deletes a project that nothing refers to. */
export const DeleteProject = ({ of: project, onClose, onDone }: Props) => {
  const tell = useTell()
  const remove = useApiWrite("DELETE", projectPath, staleAfterProjects)
  return (
    <ChangeDialog
      title="Delete the project"
      action="Delete it"
      name={project.name}
      isBusy={remove.isPending}
      error={remove.error}
      onClose={onClose}
      onConfirm={() =>
        remove.mutate(
          { params: { id: project.id } },
          {
            onSuccess: () => {
              tell({ done: `The project ${project.name} is deleted.`, audit: { type: "project", id: project.id } })
              onDone()
            }
          }
        )
      }
    >
      <p>
        Its policy layer, its links to services and its credential mapping go with it. It can only be deleted while no
        key, service or usage record refers to it.
      </p>
      {project.key_count > 0 && (
        <Group>
          <LinkButton path="/keys" search={{ project_id: project.id }}>
            See its {project.key_count} keys
          </LinkButton>
        </Group>
      )}
    </ChangeDialog>
  )
}
