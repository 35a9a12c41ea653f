import { TagsInput } from "@mantine/core"
import type { ReactNode } from "react"
import type { BodyOf } from "../../../api/Endpoints.ts"
import { ProjectPicker } from "../../../shared/keys/ProjectPicker.tsx"
import type { changesPath } from "../changes/bulkChange.tsx"

export interface BulkInput {
  readonly add: ReadonlyArray<string>
  readonly remove: ReadonlyArray<string>
  readonly project: string | null
}

export interface BulkAction {
  readonly label: string
  readonly needs: ReadonlyArray<"keys:disable" | "policies:update" | "keys:create">
  /** What it does, before it is done. */
  readonly sentence: string
  readonly form?: (input: BulkInput, change: (input: Partial<BulkInput>) => void) => ReactNode
  readonly isReady: (input: BulkInput) => boolean
  readonly bodyOf: (input: BulkInput) => BodyOf<"POST", typeof changesPath>
}

const ready = () => true

export const bulkActions: ReadonlyArray<BulkAction> = [
  {
    label: "Disable",
    needs: ["keys:disable"],
    sentence: "Their requests are refused until they are enabled again.",
    isReady: ready,
    bodyOf: () => ({ action: "disable" })
  },
  {
    label: "Enable",
    needs: ["keys:disable"],
    sentence: "Their requests are allowed again. Revoked keys stay revoked.",
    isReady: ready,
    bodyOf: () => ({ action: "enable" })
  },
  {
    label: "Tag",
    needs: ["policies:update"],
    sentence: "Tags are for finding keys. They change nothing of what a key may do.",
    form: (input, change) => <TagsForm input={input} onChange={change} />,
    isReady: ({ add, remove }) => add.length + remove.length > 0,
    bodyOf: ({ add, remove }) => ({ action: "tag", add_tags: add, remove_tags: remove })
  },
  {
    label: "Move",
    needs: ["policies:update", "keys:create"],
    sentence: "The policy layer, the services and the budget of the other project hold for them from then on.",
    form: (input, change) => <ProjectForm input={input} onChange={change} />,
    isReady: ({ project }) => project !== null,
    bodyOf: ({ project }) => ({ action: "move", ...(project !== null && { project_id: project }) })
  }
]

interface FormProps {
  readonly input: BulkInput
  readonly onChange: (input: Partial<BulkInput>) => void
}

const TagsForm = ({ input, onChange }: FormProps) => (
  <>
    <TagsInput label="Add tags" value={[...input.add]} onChange={(add) => onChange({ add })} data-autofocus />
    <TagsInput label="Remove tags" value={[...input.remove]} onChange={(remove) => onChange({ remove })} />
  </>
)

const ProjectForm = ({ input, onChange }: FormProps) => (
  <ProjectPicker label="To the project" value={input.project} onChange={(project) => onChange({ project })} isFocused />
)
