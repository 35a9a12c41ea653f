import { useApi } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { LinkButton } from "../../shared/links/LinkButton.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { EffectiveTable } from "../../shared/policy/EffectiveTable.tsx"
import { Facts } from "../../shared/words/Facts.tsx"
import type { Project } from "./project.ts"

/** What the layers above the keys of a project restrict. */
export const ProjectLayer = ({ of: project }: { readonly of: Project }) => {
  const mayChange = useAllowed("policies:update")
  const effective = useApi("/admin-ui/admin/policy/effective", { query: { project_id: project.id } })
  const own = effective.data?.layers.find(({ kind }) => kind === "project")
  const shared = Object.entries(own?.shared ?? {}).filter(([, value]) => value !== null)
  return (
    <Panel
      title="What holds for its keys"
      note="by the global layer and that of the project"
      query={effective}
      height={220}
      flush
      actions={
        mayChange && (
          <LinkButton path="/policies" search={{ do: "edit", kind: "project", scope: project.id }} variant="filled">
            {own === undefined ? "Make a layer" : "Edit the layer"}
          </LinkButton>
        )
      }
    >
      {effective.data !== undefined && (
        <>
          {shared.length > 0 && (
            <div style={{ padding: "12px 14px 0" }}>
              <Facts facts={shared.map(([name, value]) => [`all keys together: ${name}`, String(value)])} />
            </div>
          )}
          <EffectiveTable effective={effective.data} />
        </>
      )}
    </Panel>
  )
}
