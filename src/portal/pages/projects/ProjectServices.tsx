import { Button, Group, MultiSelect, Stack } from "@mantine/core"
import { useState } from "react"
import { useApi } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { Panel } from "../../shared/page/Panel.tsx"
import { ChangeProject } from "./ChangeProject.tsx"
import type { Project } from "./project.ts"

/** Which registered services the keys of a project may call. */
export const ProjectServices = ({ of }: { readonly of: Project }) => {
  const mayEdit = useAllowed("settings:update")
  const maySee = useAllowed("usage:read")
  // what the person saw when the change began
  const [base, setBase] = useState<Project>()
  const [names, setNames] = useState(of.service_names)
  const [isReviewing, setReviewing] = useState(false)
  const services = useApi("/admin-ui/admin/services", {}, { enabled: maySee })
  const isChanged = base !== undefined && JSON.stringify(names) !== JSON.stringify(base.service_names)
  const change = (next: ReadonlyArray<string>) => {
    setBase((before) => before ?? of)
    setNames(next)
  }
  const reset = () => {
    setBase(undefined)
    setReviewing(false)
  }
  return (
    <Panel title="Services" {...(maySee && { query: services })} height={110}>
      <Stack gap="sm">
        <MultiSelect
          label={<code>service_names</code>}
          description="The keys of the project may call these. Without any, only policies restrict which services they may call."
          data={[...new Set([...(services.data ?? []).map(({ name }) => name), ...names])]}
          value={[...(base === undefined ? of.service_names : names)]}
          onChange={change}
          readOnly={!mayEdit}
          searchable
          clearable={mayEdit}
        />
        {mayEdit && (
          <Group>
            <Button disabled={!isChanged} onClick={() => setReviewing(true)}>
              See the difference
            </Button>
          </Group>
        )}
      </Stack>
      {isReviewing && base !== undefined && (
        <ChangeProject
          base={base}
          changes={{ service_names: names }}
          onClose={() => setReviewing(false)}
          done={`The services of ${of.name} are changed.`}
          onDone={reset}
        />
      )}
    </Panel>
  )
}
