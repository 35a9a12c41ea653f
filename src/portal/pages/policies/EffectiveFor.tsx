import { Autocomplete, Stack, TextInput } from "@mantine/core"
import { useTextSearch } from "../../address/search.ts"
import { useTyped } from "../../address/useTyped.ts"
import { useApi } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { LazySelect } from "../../shared/fields/LazySelect.tsx"
import { KeyPicker } from "../../shared/keys/KeyPicker.tsx"
import { ProjectPicker } from "../../shared/keys/ProjectPicker.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { EffectiveTable, LayerName } from "../../shared/policy/EffectiveTable.tsx"
import { usePolicyFields } from "../../shared/policy/usePolicyFields.ts"
import styles from "./words/Policies.module.css"

export const effectivePath = "/admin-ui/admin/policy/effective"

/** For whom the policy is read: `text` reads the address. */
export const effectiveRequest = <Route extends string>(
  text: (name: string) => string | undefined,
  route: Route | undefined
) => ({
  query: {
    key_id: text("key_id"),
    ...(text("key_id") === undefined && { project_id: text("project_id"), team_id: text("team_id") }),
    ...(route !== undefined && { route }),
    model: text("model")
  }
})

/** The policy that holds for requests of a key, a project or a team; to a route, or for a model. */
export const EffectiveFor = () => {
  const { change, text } = useTextSearch()
  const described = usePolicyFields()
  const maySee = useAllowed("usage:read")
  const models = useApi("/admin-ui/admin/usage/filter-values", { query: { field: "model" } }, { enabled: maySee })
  const key = text("key_id")
  const route = described.data?.routes.find((one) => one === text("route"))
  const effective = useApi(effectivePath, effectiveRequest(text, route))
  const data = effective.data
  const team = useTyped(text("team_id") ?? "", (team_id) => change({ team_id }))
  const model = useTyped(text("model") ?? "", (name) => change({ model: name }))
  return (
    <Stack gap="sm">
      <Panel title="Effective for">
        <div className={styles.pick}>
          <KeyPicker value={key} onChange={(key_id) => change({ key_id, project_id: undefined, team_id: undefined })} />
          <ProjectPicker
            label="Project"
            placeholder={key === undefined ? "any" : "that of the key"}
            value={key === undefined ? (text("project_id") ?? null) : null}
            onChange={(project_id) => change({ project_id: project_id ?? undefined })}
            disabled={key !== undefined}
            clearable
          />
          <TextInput
            label="Team"
            placeholder={key === undefined ? "any" : "that of the key"}
            value={key === undefined ? team.typed : ""}
            onChange={({ currentTarget }) => team.type(currentTarget.value)}
            disabled={key !== undefined}
          />
          <LazySelect
            label="Route"
            placeholder="any"
            data={[...(described.data?.routes ?? [])]}
            value={route ?? null}
            onChange={(next) => change({ route: next ?? undefined })}
            searchable
            clearable
          />
          <Autocomplete
            size="xs"
            label="Model"
            placeholder="any"
            data={[...(models.data?.values ?? [])]}
            value={model.typed}
            onChange={model.type}
          />
        </div>
      </Panel>
      <Panel
        title="What holds"
        note={
          data !== undefined &&
          (data.layers.length === 0 ? (
            "no layer applies"
          ) : (
            <>
              by{" "}
              {data.layers.map((layer) => (
                <LayerName key={layer.layer} {...layer} />
              ))}
            </>
          ))
        }
        query={effective}
        height={240}
        flush
      >
        {data !== undefined && <EffectiveTable effective={data} />}
      </Panel>
    </Stack>
  )
}
