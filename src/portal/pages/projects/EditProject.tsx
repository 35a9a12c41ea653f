import { useState } from "react"
import type { FieldError } from "../../api/ApiError.ts"
import { DraftDialog } from "../../shared/change/DraftDialog.tsx"
import { ChangeProject } from "./ChangeProject.tsx"
import { type ProjectDraft, ProjectForm } from "./ProjectForm.tsx"
import type { Project } from "./project.ts"

interface Props {
  readonly of: Project
  readonly onClose: () => void
}

/** Renames a project, and changes who answers for it. */
export const EditProject = ({ of, onClose }: Props) => {
  // what the person saw when the form opened, also if the project changes meanwhile
  const [project] = useState(of)
  const [draft, setDraft] = useState<ProjectDraft>({
    name: project.name,
    owner_email: project.owner_email,
    description: project.description,
    tags: project.tags
  })
  const [isReviewing, setReviewing] = useState(false)
  const [errors, setErrors] = useState<ReadonlyArray<FieldError>>([])
  const was: Readonly<Record<string, unknown>> = { ...project }
  const changes = Object.fromEntries(
    Object.entries(draft).filter(([name, value]) => JSON.stringify(was[name]) !== JSON.stringify(value))
  )
  if (isReviewing) {
    return (
      <ChangeProject
        base={project}
        changes={changes}
        onClose={() => setReviewing(false)}
        onRefused={(fields) => {
          setErrors(fields)
          setReviewing(false)
        }}
        done={`The project ${draft.name} is changed.`}
        onDone={onClose}
      />
    )
  }
  return (
    <DraftDialog
      title={`Edit ${project.name}`}
      size="md"
      isChanged={Object.keys(changes).length > 0}
      onReview={() => setReviewing(true)}
      onClose={onClose}
    >
      <ProjectForm
        draft={draft}
        onChange={(change) => setDraft((before) => ({ ...before, ...change }))}
        errors={errors}
      />
    </DraftDialog>
  )
}
