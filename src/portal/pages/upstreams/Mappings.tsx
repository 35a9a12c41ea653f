import { Button, Group } from "@mantine/core"
import { useState } from "react"
import { call } from "../../api/control.ts"
import type { ResponseOf } from "../../api/Endpoints.ts"
import { useApi } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { useConfirm } from "../../shared/change/useConfirm.tsx"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { PathLink } from "../../shared/links/PathLink.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { type Column, DataTable } from "../../shared/table/DataTable.tsx"
import { curlOf } from "../../shared/words/CopyAs.tsx"
import { StatusWord } from "../../shared/words/StatusWord.tsx"
import { When } from "../../shared/words/When.tsx"
import { MappingForm } from "./MappingForm.tsx"

type Mapping = ResponseOf<"GET", "/admin-ui/admin/providers/upstream-credentials">[number]
const listPath = "/admin-ui/admin/providers/upstream-credentials"
const path = "/admin-ui/admin/providers/upstream-credentials/:id"

/** Keys and projects whose requests carry a credential of their own. */
export const Mappings = () => {
  const mayChange = useAllowed("providers:update")
  const mappings = useApi(listPath, {})
  const [isOpen, setOpen] = useState(false)
  const { ask, dialog } = useConfirm()
  const toggle = ({ enabled, id, target_label }: Mapping) => {
    const enable = () => call("POST", `${path}/enable`, { params: { id } })
    const disable = () => call("POST", `${path}/disable`, { params: { id } })
    ask({
      title: `${enabled ? "Disable" : "Enable"} the credential of ${target_label}`,
      action: enabled ? "Disable" : "Enable",
      body: enabled ? (
        <p>
          Requests then use the next credential: that of the key’s project, then that of the provider or the
          environment.
        </p>
      ) : (
        <p>Requests use it from then on, before that of the provider.</p>
      ),
      run: enabled ? disable : enable,
      undo: enabled ? enable : disable,
      done: `The credential of ${target_label} is ${enabled ? "disabled" : "enabled"}.`,
      audit: { type: "upstream_credential_mapping", id }
    })
  }
  const remove = ({ id, target_label }: Mapping) =>
    ask({
      title: `Delete the credential of ${target_label}`,
      action: "Delete",
      name: target_label,
      body: <p>It is gone for good: nobody can read it again. Requests use the next credential.</p>,
      run: () => call("DELETE", path, { params: { id } }),
      done: `The credential of ${target_label} is deleted.`,
      audit: { type: "upstream_credential_mapping", id }
    })
  return (
    <Panel
      title="Credentials of keys and projects"
      note="A key’s own comes first, then its project’s, then the provider’s, then the environment’s."
      query={mappings}
      height={200}
      flush
      actions={
        mayChange && (
          <Button variant="default" onClick={() => setOpen(true)}>
            Set a credential
          </Button>
        )
      }
    >
      <DataTable
        name="mappings"
        label="Credentials of keys and projects"
        columns={columnsOf(mayChange ? { onToggle: toggle, onRemove: remove } : undefined)}
        rows={mappings.data ?? []}
        rowId={({ id }) => id}
        empty={
          <Empty
            command={
              mayChange &&
              curlOf({
                method: "POST",
                address: listPath,
                body: { scope: "project", target_id: "PROJECT_ID", credential: "sk-example" }
              })
            }
          >
            No key and no project has a credential of its own. All use that of the provider.
          </Empty>
        }
      />
      {isOpen && <MappingForm stored={mappings.data ?? []} onClose={() => setOpen(false)} />}
      {dialog}
    </Panel>
  )
}

interface Changes {
  readonly onToggle: (mapping: Mapping) => void
  readonly onRemove: (mapping: Mapping) => void
}

const columnsOf = (changes: Changes | undefined): ReadonlyArray<Column<Mapping>> => [
  {
    id: "target",
    header: "Key or project",
    cell: ({ scope, target_id, target_label }) => (
      <PathLink path={`/${scope}s/${encodeURIComponent(target_id)}`}>
        <ForeignText>{target_label}</ForeignText>
      </PathLink>
    )
  },
  { id: "scope", header: "Of a", cell: ({ scope }) => scope },
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
  {
    id: "origin",
    header: "Sent only to",
    cell: ({ credential_origin }) => <ForeignText>{credential_origin ?? "UPSTREAM_BASE_URL"}</ForeignText>
  },
  { id: "updated", header: "Changed", cell: ({ updated_at }) => <When at={updated_at} /> },
  ...(changes === undefined
    ? []
    : [
        {
          id: "actions",
          header: "Actions",
          main: true,
          cell: (mapping: Mapping) => (
            <Group gap={0} wrap="nowrap">
              <Button
                variant="subtle"
                px={6}
                onClick={() => changes.onToggle(mapping)}
                aria-label={`${mapping.enabled ? "Disable" : "Enable"} the credential of ${mapping.target_label}`}
              >
                {mapping.enabled ? "Disable" : "Enable"}
              </Button>
              <Button
                variant="subtle"
                px={6}
                c="red"
                onClick={() => changes.onRemove(mapping)}
                aria-label={`Delete the credential of ${mapping.target_label}`}
              >
                Delete
              </Button>
            </Group>
          )
        }
      ])
]
