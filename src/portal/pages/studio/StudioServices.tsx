import { Button } from "@mantine/core"
import { Link } from "@tanstack/react-router"
import { useState } from "react"
import { callWith } from "../../api/control.ts"
import type { ResponseOf } from "../../api/Endpoints.ts"
import { useApi } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { useConfirm } from "../../shared/change/useConfirm.tsx"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { type Column, DataTable } from "../../shared/table/DataTable.tsx"
import { countedText } from "../../shared/words/format.ts"
import { StatusWord } from "../../shared/words/StatusWord.tsx"
import type { ConnectionQuery } from "./Connection.tsx"
import { ImportList } from "./ImportList.tsx"

type StudioService = ResponseOf<"GET", "/admin-ui/admin/studio/services">[number]
type Registered = ResponseOf<"GET", "/admin-ui/admin/services">[number]
interface Row extends StudioService {
  /** The service that was imported from it. */
  readonly imported: Registered | undefined
}

/** What the studio offers, beside what is imported already. The chosen ones are imported one after the other. */
export const StudioServices = ({ connection }: { readonly connection: ConnectionQuery }) => {
  const mayChange = useAllowed("services:update")
  const isConnected = connection.data !== undefined && connection.data.base_url !== null
  const offered = useApi("/admin-ui/admin/studio/services", {}, { enabled: isConnected })
  const registered = useApi("/admin-ui/admin/services", {})
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const { ask, dialog } = useConfirm()
  if (!isConnected) {
    return (
      <Panel title="Services of the studio" query={connection} height={220}>
        <Empty action={<ImportList />}>
          Connect a studio first. You can also import a list of services as JSON, without a studio.
        </Empty>
      </Panel>
    )
  }
  const rows = (offered.data ?? []).map(
    (service): Row => ({
      ...service,
      imported: registered.data?.find(({ studio_service_id }) => studio_service_id === service.studio_service_id)
    })
  )
  const chosen = rows.filter(({ studio_service_id }) => selected.has(studio_service_id))
  const importChosen = () =>
    ask({
      title: `Import ${countedText(chosen.length, "service")}`,
      action: "Import",
      body: (
        <ul>
          {chosen.map(({ imported, name, studio_service_id }) => (
            <li key={studio_service_id}>
              <strong>
                <ForeignText>{name}</ForeignText>
              </strong>{" "}
              {imported === undefined
                ? "is new. It stays disabled until you enable it."
                : "takes its name and pricing rules from the studio; the rest stays."}
            </li>
          ))}
        </ul>
      ),
      run: async () => {
        for (const { import_request } of chosen) {
          await callWith("POST", "/admin-ui/admin/services/import", import_request)
        }
      },
      done: `${countedText(chosen.length, "service")} ${chosen.length === 1 ? "is" : "are"} imported. Give each its credential, then enable it.`,
      audit: { type: "service", id: chosen.length === 1 ? (chosen[0]?.name ?? "") : "" },
      onDone: () => setSelected(new Set())
    })
  return (
    <Panel
      title="Services of the studio"
      query={offered}
      height={220}
      flush
      actions={
        mayChange && (
          <Button onClick={importChosen} disabled={chosen.length === 0}>
            {chosen.length === 0 ? "Import the selected" : `Import ${chosen.length}`}
          </Button>
        )
      }
    >
      <DataTable
        name="studio-services"
        label="Services of the studio"
        columns={columns}
        rows={rows}
        rowId={({ studio_service_id }) => studio_service_id}
        {...(mayChange && { selected, onSelect: setSelected })}
        empty={<Empty>The studio has no services.</Empty>}
      />
      {dialog}
    </Panel>
  )
}

const columns: ReadonlyArray<Column<Row>> = [
  { id: "name", header: "Name", cell: ({ display_name, name }) => <ForeignText>{display_name ?? name}</ForeignText> },
  {
    id: "state",
    header: "Here",
    main: true,
    cell: ({ imported }) =>
      imported === undefined ? (
        <StatusWord meaning="idle">not imported</StatusWord>
      ) : (
        <Link to="/services/$name" params={{ name: imported.name }}>
          {imported.name}
        </Link>
      )
  },
  { id: "base_url", header: "Address", cell: ({ base_url }) => <ForeignText>{base_url ?? "–"}</ForeignText> },
  { id: "route", header: "Path", cell: ({ route_pattern }) => <code>{route_pattern}</code> },
  { id: "environment", header: "Environment", cell: ({ environment }) => environment ?? "–" },
  {
    id: "status",
    header: "Status there",
    main: true,
    cell: ({ status }) => <ForeignText>{status ?? "–"}</ForeignText>
  },
  { id: "tags", header: "Tags", cell: ({ tags }) => <ForeignText>{tags.join(", ")}</ForeignText> }
]
