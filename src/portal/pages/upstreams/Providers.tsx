import { Button, Group } from "@mantine/core"
import { useState } from "react"
import { useTextSearch } from "../../address/search.ts"
import { call } from "../../api/control.ts"
import type { ResponseOf } from "../../api/Endpoints.ts"
import { useApi } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { useConfirm } from "../../shared/change/useConfirm.tsx"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { type Column, DataTable } from "../../shared/table/DataTable.tsx"
import { curlOf } from "../../shared/words/CopyAs.tsx"
import { StatusWord } from "../../shared/words/StatusWord.tsx"
import { When } from "../../shared/words/When.tsx"
import { ProviderForm } from "./ProviderForm.tsx"

export type Provider = ResponseOf<"GET", "/admin-ui/admin/providers">[number]
const listPath = "/admin-ui/admin/providers"
const path = "/admin-ui/admin/providers/:id"

/** The rows that replace the upstreams of the environment. */
export const Providers = () => {
  const { change } = useTextSearch()
  const mayChange = useAllowed("providers:update")
  const providers = useApi(listPath, {})
  const [edited, setEdited] = useState<Provider>()
  const { ask, dialog } = useConfirm()

  const toggle = ({ enabled, id, name }: Provider) => {
    const enable = () => call("POST", `${path}/enable`, { params: { id } })
    const disable = () => call("POST", `${path}/disable`, { params: { id } })
    ask({
      title: `${enabled ? "Disable" : "Enable"} ${name}`,
      action: enabled ? "Disable" : "Enable",
      body: enabled ? (
        <p>Requests then use the upstream of the environment, or are refused if there is none.</p>
      ) : (
        <p>Its requests go there from then on, instead of to the upstream of the environment.</p>
      ),
      run: enabled ? disable : enable,
      undo: enabled ? enable : disable,
      done: `${name} is ${enabled ? "disabled" : "enabled"}.`,
      audit: { type: "provider", id }
    })
  }
  const remove = ({ id, name }: Provider) =>
    ask({
      title: `Delete ${name}`,
      action: "Delete",
      name,
      body: (
        <p>Its credential is deleted with it. Requests then use the upstream of the environment, if there is one.</p>
      ),
      run: () => call("DELETE", path, { params: { id } }),
      done: `${name} is deleted.`,
      audit: { type: "provider", id }
    })
  return (
    <Panel query={providers} height={220} flush>
      <DataTable
        name="providers"
        label="Providers"
        columns={columnsOf(mayChange ? { onEdit: setEdited, onRemove: remove, onToggle: toggle } : undefined)}
        rows={providers.data ?? []}
        rowId={({ id }) => id}
        empty={
          <Empty
            action={mayChange && <Button onClick={() => change({ do: "create" })}>Add a provider</Button>}
            command={
              mayChange &&
              curlOf({
                method: "POST",
                address: listPath,
                body: {
                  provider: "upstream",
                  name: "openai",
                  family: "openai",
                  base_url: "https://api.openai.com/v1",
                  credential: "sk-example"
                }
              })
            }
          >
            No provider is stored. Requests go to the upstream of the environment, or to the simulator.
          </Empty>
        }
      />
      {edited !== undefined && <ProviderForm key={edited.id} provider={edited} onClose={() => setEdited(undefined)} />}
      {dialog}
    </Panel>
  )
}

interface Changes {
  readonly onEdit: (provider: Provider) => void
  readonly onToggle: (provider: Provider) => void
  readonly onRemove: (provider: Provider) => void
}

const columnsOf = (changes: Changes | undefined): ReadonlyArray<Column<Provider>> => [
  { id: "name", header: "Name", cell: ({ name }) => <ForeignText>{name}</ForeignText> },
  {
    id: "state",
    header: "State",
    main: true,
    cell: ({ enabled }) => (
      <StatusWord meaning={enabled ? "good" : "idle"}>{enabled ? "enabled" : "disabled"}</StatusWord>
    )
  },
  {
    id: "credential",
    header: "Credential",
    main: true,
    cell: ({ credential_configured }) => (
      <StatusWord meaning={credential_configured ? "good" : "warning"}>
        {credential_configured ? "configured" : "missing"}
      </StatusWord>
    )
  },
  { id: "url", header: "Address", cell: ({ base_url }) => <ForeignText>{base_url}</ForeignText> },
  { id: "kind", header: "Kind", cell: ({ provider }) => provider },
  { id: "family", header: "Family", cell: ({ family }) => family ?? "both" },
  {
    id: "header",
    header: "Header",
    hidden: true,
    cell: ({ credential_header_mode, credential_header_name }) => (
      <code>{credential_header_name ?? credential_header_mode}</code>
    )
  },
  { id: "updated", header: "Changed", cell: ({ updated_at }) => <When at={updated_at} /> },
  ...(changes === undefined
    ? []
    : [
        {
          id: "actions",
          header: "Actions",
          main: true,
          cell: (provider: Provider) => (
            <Group gap={0} wrap="nowrap">
              <Button
                variant="subtle"
                px={6}
                onClick={() => changes.onToggle(provider)}
                aria-label={`${provider.enabled ? "Disable" : "Enable"} ${provider.name}`}
              >
                {provider.enabled ? "Disable" : "Enable"}
              </Button>
              <Button
                variant="subtle"
                px={6}
                onClick={() => changes.onEdit(provider)}
                aria-label={`Edit ${provider.name}`}
              >
                Edit
              </Button>
              <Button
                variant="subtle"
                px={6}
                c="red"
                onClick={() => changes.onRemove(provider)}
                aria-label={`Delete ${provider.name}`}
              >
                Delete
              </Button>
            </Group>
          )
        }
      ])
]
