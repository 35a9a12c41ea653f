import { Button, Stack } from "@mantine/core"
import { useState } from "react"
import { call } from "../../api/control.ts"
import type { ResponseOf } from "../../api/Endpoints.ts"
import { useApi } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { useConfirm } from "../../shared/change/useConfirm.tsx"
import { JsonDiff } from "../../shared/diff/JsonDiff.tsx"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { type Column, DataTable } from "../../shared/table/DataTable.tsx"
import { When } from "../../shared/words/When.tsx"
import { ImportList } from "./ImportList.tsx"
import { RegistryDifference } from "./RegistryDifference.tsx"

type Version = ResponseOf<"GET", "/admin-ui/admin/services/import/versions">[number]
export const versionsPath = "/admin-ui/admin/services/import/versions"
const atOnce = 50

/** The lists that were active, newest first. Each can be restored, except credentials. */
export const Versions = () => {
  const mayChange = useAllowed("services:update")
  const [before, setBefore] = useState<number>()
  const versions = useApi(
    versionsPath,
    {
      query: { limit: atOnce, before }
    },
    { enabled: mayChange }
  )
  const { ask, dialog } = useConfirm()
  const rows = versions.data ?? []
  const newest = rows[0]
  const restore = (version: Version) =>
    ask({
      title: `Restore version ${version.version}`,
      action: "Restore",
      name: String(version.version),
      body: (
        <Stack gap="xs">
          <p>From the version that is active to this one. Credentials stay as they are.</p>
          <JsonDiff
            before={newest?.services_json ?? []}
            after={version.services_json}
            label="Difference of the versions"
          />
        </Stack>
      ),
      run: () =>
        call("POST", "/admin-ui/admin/services/import/rollback/:version", {
          params: { version: String(version.version) }
        }),
      done: `Version ${version.version} is restored, as a new version.`,
      audit: { type: "service_registry" }
    })
  return (
    <Panel query={versions} height={200} flush>
      <DataTable
        name="registry-versions"
        label="Versions of the registry"
        columns={columnsOf(before === undefined ? newest?.version : undefined, mayChange ? restore : undefined)}
        rows={rows}
        rowId={({ version }) => String(version)}
        toolbar={
          before !== undefined && (
            <Button variant="default" onClick={() => setBefore(undefined)}>
              The newest versions
            </Button>
          )
        }
        empty={
          <Empty action={<ImportList />}>No list was activated yet. Imports of single services make no version.</Empty>
        }
      />
      {rows.length === atOnce && (
        <Button m="sm" variant="default" onClick={() => setBefore(rows.at(-1)?.version)}>
          Older versions
        </Button>
      )}
      {dialog}
    </Panel>
  )
}

const columnsOf = (
  active: number | undefined,
  onRestore: ((version: Version) => void) | undefined
): ReadonlyArray<Column<Version>> => [
  {
    id: "version",
    header: "Version",
    cell: ({ rolled_back_from_version, version }) =>
      `${version}${version === active ? ", active" : ""}${rolled_back_from_version === null ? "" : `, after ${rolled_back_from_version}`}`
  },
  { id: "at", header: "Activated", main: true, cell: ({ activated_at }) => <When at={activated_at} /> },
  { id: "source", header: "Source", main: true, cell: ({ source }) => <ForeignText>{source}</ForeignText> },
  { id: "services", header: "Services", numeric: true, cell: ({ services_json }) => services_json.length },
  { id: "diff", header: "Difference", hidden: true, cell: ({ diff }) => <RegistryDifference diff={diff} /> },
  {
    id: "counts",
    header: "Added, changed, disabled",
    cell: ({ diff }) => `${diff.added.length}, ${diff.changed.length}, ${diff.removed.length}`
  },
  ...(onRestore === undefined
    ? []
    : [
        {
          id: "action",
          header: "Action",
          main: true,
          cell: (version: Version) =>
            version.version === active ? null : (
              <Button
                variant="subtle"
                px={6}
                onClick={() => onRestore(version)}
                aria-label={`Restore version ${version.version}`}
              >
                Restore
              </Button>
            )
        }
      ])
]
