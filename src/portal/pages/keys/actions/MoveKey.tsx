import { Select } from "@mantine/core"
import { useState } from "react"
import { useApi } from "../../../api/queries.ts"
import { DraftDialog } from "../../../shared/change/DraftDialog.tsx"
import { shownText } from "../../../shared/foreign/marks.ts"
import { type Key, keyName } from "../words/key.ts"
import { ChangeKey } from "./ChangeKey.tsx"

interface Props {
  readonly of: Key
  readonly onClose: () => void
}

const mostProjects = 500

/** Moves a key to another project, whose layer, services and budget then hold for it. */
export const MoveKey = ({ of, onClose }: Props) => {
  const [key] = useState(of)
  const [project, setProject] = useState<string | null>(key.project_id)
  const [isReviewing, setReviewing] = useState(false)
  const projects = useApi("/admin-ui/admin/projects", { query: { limit: mostProjects } })
  if (isReviewing) {
    return (
      <ChangeKey
        base={key}
        changes={{ owner_type: project === null ? "individual" : "project", project_id: project }}
        onClose={() => setReviewing(false)}
        done={`${keyName(key)} is moved.`}
        onDone={onClose}
      >
        <p>From then on the policy layer and the services of the project hold for the key.</p>
      </ChangeKey>
    )
  }
  return (
    <DraftDialog
      title={`Move ${keyName(key)}`}
      size="md"
      isChanged={project !== key.project_id}
      onReview={() => setReviewing(true)}
      onClose={onClose}
    >
      <Select
        label="Project"
        placeholder="none: an individual key"
        data={projects.data?.map(({ id, name }) => ({ value: id, label: shownText(name) })) ?? []}
        value={project}
        onChange={setProject}
        searchable
        clearable
        error={projects.error?.message}
        data-autofocus
      />
    </DraftDialog>
  )
}
