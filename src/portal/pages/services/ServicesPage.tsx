import { Button } from "@mantine/core"
import { Link, useNavigate } from "@tanstack/react-router"
import { useTextSearch } from "../../address/search.ts"
import { useLiveRefresh } from "../../api/live.ts"
import { useApi } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { IdLink } from "../../shared/links/IdLink.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { PageHeader } from "../../shared/page/PageHeader.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { type Column, DataTable } from "../../shared/table/DataTable.tsx"
import { EmptyList } from "../../shared/table/EmptyList.tsx"
import { type Filter, FilterBar } from "../../shared/table/FilterBar.tsx"
import { CopyAs, curlOf } from "../../shared/words/CopyAs.tsx"
import { When } from "../../shared/words/When.tsx"
import { ServiceForm } from "./ServiceForm.tsx"
import { costText, type Service, StateWord, stateOf } from "./service.tsx"

const liveTopics = ["configuration"] as const
const list = "/admin-ui/admin/services"
const filters: ReadonlyArray<Filter> = [
  { name: "q", label: "Name, path or address" },
  { name: "state", label: "State", choices: ["enabled", "disabled", "incomplete"] }
]

/** Backends that keys reach through the gateway. */
const ServicesPage = () => {
  const { change, text } = useTextSearch()
  const navigate = useNavigate()
  const mayChange = useAllowed("services:update")
  const mayOpen = useAllowed("operators:manage")
  const services = useApi(list, {})
  useLiveRefresh(liveTopics, [list])
  const word = (text("q") ?? "").toLowerCase()
  const state = text("state")
  const rows = (services.data ?? []).filter(
    (service) =>
      (state === undefined || stateOf(service)[1] === state) &&
      [service.name, service.upstream_base_url ?? "", service.route_pattern].some((one) =>
        one.toLowerCase().includes(word)
      )
  )
  const open = (name: string) => void navigate({ to: "/services/$name", params: { name } })
  return (
    <>
      <PageHeader
        title="Services"
        lead="Backends of your own that keys call through the gateway, with its limits, guardrails and records."
        actions={
          <>
            <CopyAs address={list} sections={["services"]} />
            {mayChange && (
              <>
                <Button variant="default" component={Link} to="/studio">
                  Import from a studio
                </Button>
                <Button onClick={() => change({ do: "create" })}>Register a service</Button>
              </>
            )}
          </>
        }
      />
      <Panel query={services} height={300} flush>
        {(instead) => (
          <DataTable
            instead={instead}
            name="services"
            label="Services"
            columns={columns}
            rows={rows}
            rowId={({ name }) => name}
            {...(mayOpen && { onOpen: ({ name }: Service) => open(name) })}
            toolbar={<FilterBar filters={filters} />}
            empty={
              <EmptyList filters={filters} unmatched="No service matches these filters.">
                <Empty
                  action={mayChange && <Button onClick={() => change({ do: "create" })}>Register a service</Button>}
                  command={
                    mayChange &&
                    curlOf({
                      method: "POST",
                      address: list,
                      body: { name: "search", upstream_base_url: "https://search.example.com" }
                    })
                  }
                >
                  No service is registered. Keys can call a service at its path.
                </Empty>
              </EmptyList>
            }
          />
        )}
      </Panel>
      {text("do") === "create" && mayChange && (
        <ServiceForm onClose={() => change({ do: undefined })} onSaved={mayOpen ? open : () => {}} />
      )}
    </>
  )
}

const columns: ReadonlyArray<Column<Service>> = [
  {
    id: "name",
    header: "Name",
    cell: ({ name }) => <IdLink path={`/services/${encodeURIComponent(name)}`}>{name}</IdLink>
  },
  { id: "state", header: "State", main: true, cell: (service) => <StateWord service={service} /> },
  { id: "route", header: "Path", main: true, cell: ({ route_pattern }) => <code>{route_pattern}</code> },
  {
    id: "upstream",
    header: "Address",
    cell: ({ upstream_base_url }) => <ForeignText>{upstream_base_url ?? "–"}</ForeignText>
  },
  { id: "methods", header: "Methods", cell: ({ allowed_methods }) => <code>{allowed_methods.join(" ")}</code> },
  {
    id: "credential",
    header: "Credential",
    cell: ({ credential_configured }) => (credential_configured ? "configured" : "missing")
  },
  { id: "cost", header: "Price", main: true, cell: (service) => costText(service) },
  { id: "endpoints", header: "Endpoints", numeric: true, cell: ({ openapi_endpoints }) => openapi_endpoints.length },
  {
    id: "source",
    header: "From",
    cell: ({ source, sync_status }) => (source === "studio" ? `studio, ${sync_status}` : "here")
  },
  { id: "updated", header: "Changed", cell: ({ updated_at }) => <When at={updated_at} /> }
]

export default ServicesPage
