import { Button } from "@mantine/core"
import { Link } from "@tanstack/react-router"
import type { ResponseOf } from "../../api/Endpoints.ts"
import { useApi } from "../../api/queries.ts"
import { IdLink } from "../../shared/links/IdLink.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { type Column, DataTable } from "../../shared/table/DataTable.tsx"
import { bytesText, durationText } from "../../shared/words/format.ts"
import { StatusWord } from "../../shared/words/StatusWord.tsx"

type Service = ResponseOf<"GET", "/admin-ui/admin/services">[number]

/** The paths of registered services. Their settings are on their own pages. */
export const ServiceRoutes = () => {
  const services = useApi("/admin-ui/admin/services", {})
  return (
    <Panel title="Registered services" query={services} height={150} flush>
      <DataTable
        name="service-routes"
        label="Routes of services"
        columns={columns}
        rows={services.data ?? []}
        rowId={({ name }) => name}
        empty={
          <Empty
            action={
              <Button variant="default" component={Link} to="/services">
                Services
              </Button>
            }
          >
            No service is registered.
          </Empty>
        }
      />
    </Panel>
  )
}

const columns: ReadonlyArray<Column<Service>> = [
  { id: "route", header: "Route", cell: ({ route_pattern }) => <code>{route_pattern}</code> },
  {
    id: "state",
    header: "State",
    main: true,
    width: 110,
    cell: ({ enabled, missing_runtime_fields }) => (
      <StatusWord meaning={missing_runtime_fields.length > 0 ? "warning" : enabled ? "good" : "idle"}>
        {missing_runtime_fields.length > 0 ? "incomplete" : enabled ? "enabled" : "disabled"}
      </StatusWord>
    )
  },
  {
    id: "service",
    header: "Service",
    main: true,
    cell: ({ name }) => (
      <IdLink path={`/services/${encodeURIComponent(name)}`} search={{ do: "edit" }}>
        {name}
      </IdLink>
    )
  },
  { id: "methods", header: "Methods", cell: ({ allowed_methods }) => <code>{allowed_methods.join(" ")}</code> },
  { id: "timeout", header: "timeout_ms", numeric: true, cell: ({ timeout_ms }) => durationText(timeout_ms) },
  { id: "body", header: "Body", numeric: true, cell: ({ max_body_bytes }) => bytesText(max_body_bytes) }
]
