import { Select, TagsInput } from "@mantine/core"
import type { ReactNode } from "react"
import { call } from "../../../api/control.ts"
import { useApi } from "../../../api/queries.ts"
import { type Key, keyPath } from "../words/key.ts"

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
  /** What it did, after the server has said so. */
  readonly past: string
  readonly form?: (input: BulkInput, change: (input: Partial<BulkInput>) => void) => ReactNode
  readonly isReady: (input: BulkInput) => boolean
  readonly act: (key: Key, input: BulkInput) => Promise<unknown>
  readonly undo?: (key: Key, input: BulkInput) => Promise<unknown>
}

const post = (verb: "disable" | "enable") => (key: Key) =>
  call("POST", `/admin-ui/admin/keys/:id/${verb}`, { params: { id: key.id } })

const patchTags = (key: Key, tags: ReadonlyArray<string>) =>
  call("PATCH", keyPath, { params: { id: key.id }, body: { tags: [...new Set(tags)] } })

const ready = () => true

export const bulkActions: ReadonlyArray<BulkAction> = [
  {
    label: "Disable",
    needs: ["keys:disable"],
    sentence: "Their requests are refused until they are enabled again.",
    past: "disabled",
    isReady: ready,
    act: post("disable"),
    undo: (key) => (key.disabled ? Promise.resolve() : post("enable")(key))
  },
  {
    label: "Enable",
    needs: ["keys:disable"],
    sentence: "Their requests are allowed again. Revoked keys stay revoked.",
    past: "enabled",
    isReady: ready,
    act: post("enable"),
    undo: (key) => (key.disabled ? post("disable")(key) : Promise.resolve())
  },
  {
    label: "Tag",
    needs: ["policies:update"],
    sentence: "Tags are for finding keys. They change nothing of what a key may do.",
    past: "tagged",
    form: (input, change) => <TagsForm input={input} onChange={change} />,
    isReady: ({ add, remove }) => add.length + remove.length > 0,
    act: (key, { add, remove }) =>
      patchTags(
        key,
        [...key.tags, ...add].filter((tag) => !remove.includes(tag))
      ),
    undo: (key) => patchTags(key, key.tags)
  },
  {
    label: "Move",
    needs: ["policies:update", "keys:create"],
    sentence: "The policy layer, the services and the budget of the other project hold for them from then on.",
    past: "moved",
    form: (input, change) => <ProjectForm input={input} onChange={change} />,
    isReady: ({ project }) => project !== null,
    act: (key, { project }) =>
      call("PATCH", keyPath, { params: { id: key.id }, body: { owner_type: "project", project_id: project } }),
    undo: (key) =>
      call("PATCH", keyPath, {
        params: { id: key.id },
        body: { owner_type: key.owner_type, project_id: key.project_id }
      })
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

const mostProjects = 500

const ProjectForm = ({ input, onChange }: FormProps) => {
  const projects = useApi("/admin-ui/admin/projects", { query: { limit: mostProjects } })
  return (
    <Select
      label="To the project"
      data={projects.data?.map(({ id, name }) => ({ value: id, label: name })) ?? []}
      value={input.project}
      onChange={(project) => onChange({ project })}
      searchable
      error={projects.error?.message}
      data-autofocus
    />
  )
}
