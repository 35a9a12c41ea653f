import { useState } from "react"
import { DraftDialog } from "../../../shared/change/DraftDialog.tsx"
import { ProjectPicker } from "../../../shared/keys/ProjectPicker.tsx"
import { type Key, keyName } from "../words/key.ts"
import { ChangeKey } from "./ChangeKey.tsx"

interface Props {
  readonly of: Key
  readonly onClose: () => void
}

/** Moves a key to another project, whose layer, services and budget then hold for it. */
export const MoveKey = ({ of, onClose }: Props) => {
  const [key] = useState(of)
  const [project, setProject] = useState<string | null>(key.project_id)
  const [isReviewing, setReviewing] = useState(false)
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
      <ProjectPicker
        label="Project"
        placeholder="none: an individual key"
        value={project}
        name={project === key.project_id ? key.project_name : null}
        onChange={setProject}
        clearable
        isFocused
      />
    </DraftDialog>
  )
}
