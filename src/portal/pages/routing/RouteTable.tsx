import { Button, Group } from "@mantine/core"
import type { UseQueryResult } from "@tanstack/react-query"
import { useState } from "react"
import type { ApiError } from "../../api/ApiError.ts"
import { call } from "../../api/control.ts"
import { useAllowed } from "../../api/session.ts"
import { useConfirm } from "../../shared/change/useConfirm.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { type Column, DataTable } from "../../shared/table/DataTable.tsx"
import { bytesText, durationText } from "../../shared/words/format.ts"
import { StatusWord } from "../../shared/words/StatusWord.tsx"
import { When } from "../../shared/words/When.tsx"
import { RouteForm } from "./RouteForm.tsx"
import { type Family, families, type Route } from "./route.ts"

interface Props {
  readonly family: Family
  readonly query: UseQueryResult<ReadonlyArray<Route>, ApiError>
}

/** The routes of one protocol. */
export const RouteTable = ({ family, query }: Props) => {
  const mayChange = useAllowed("policies:update")
  const [edited, setEdited] = useState<Route>()
  const { ask, dialog } = useConfirm()
  const { audit, title } = families[family]
  const toggle = ({ enabled, route, route_id }: Route) => {
    const switchTo = (verb: "enable" | "disable") => switchRoute(family, verb, route_id)
    ask({
      title: `${enabled ? "Disable" : "Enable"} ${route}`,
      action: enabled ? "Disable" : "Enable",
      body: enabled ? (
        <p>
          Requests to it are refused with <code>route_disabled</code>, whatever their key allows.
        </p>
      ) : (
        <p>Keys whose policy allows it may use it from then on.</p>
      ),
      run: () => switchTo(enabled ? "disable" : "enable"),
      undo: () => switchTo(enabled ? "enable" : "disable"),
      done: `${route} is ${enabled ? "disabled" : "enabled"}.`,
      audit: { type: audit, id: route_id }
    })
  }
  return (
    <Panel title={title} query={query} height={family === "a" ? 150 : 290} flush>
      <DataTable
        name="routes"
        label={title}
        columns={columnsOf(mayChange ? { onEdit: setEdited, onToggle: toggle } : undefined)}
        rows={query.data ?? []}
        rowId={({ route_id }) => route_id}
        empty={<Empty>No route is stored.</Empty>}
      />
      {edited !== undefined && (
        <RouteForm key={edited.route_id} family={family} route={edited} onClose={() => setEdited(undefined)} />
      )}
      {dialog}
    </Panel>
  )
}

/** The two groups have the same endpoints, each for its own routes. */
const switchRoute = (family: Family, verb: "enable" | "disable", route_id: string) => {
  const request = { params: { route_id } }
  if (family === "a") {
    return verb === "enable"
      ? call("POST", "/admin-ui/admin/family-a-routes/:route_id/enable", request)
      : call("POST", "/admin-ui/admin/family-a-routes/:route_id/disable", request)
  }
  return verb === "enable"
    ? call("POST", "/admin-ui/admin/family-b-routes/:route_id/enable", request)
    : call("POST", "/admin-ui/admin/family-b-routes/:route_id/disable", request)
}

interface Changes {
  readonly onEdit: (route: Route) => void
  readonly onToggle: (route: Route) => void
}

const columnsOf = (changes: Changes | undefined): ReadonlyArray<Column<Route>> => [
  { id: "route", header: "Route", cell: ({ route }) => <code>{route}</code> },
  {
    id: "state",
    header: "State",
    main: true,
    width: 110,
    cell: ({ enabled }) => (
      <StatusWord meaning={enabled ? "good" : "idle"}>{enabled ? "enabled" : "disabled"}</StatusWord>
    )
  },
  { id: "mode", header: "Mode", cell: ({ mode }) => <code>{mode}</code> },
  { id: "timeout", header: "timeout_ms", numeric: true, cell: ({ timeout_ms }) => durationText(timeout_ms) },
  {
    id: "request",
    header: "Request body",
    numeric: true,
    cell: ({ max_request_body_bytes }) => bytesText(max_request_body_bytes)
  },
  {
    id: "response",
    header: "Response body",
    numeric: true,
    cell: ({ limits_streams, max_response_body_bytes }) =>
      `${bytesText(max_response_body_bytes)}${limits_streams ? ", streams too" : ""}`
  },
  { id: "ownership", header: "Ownership", hidden: true, cell: ({ ownership }) => <code>{ownership}</code> },
  { id: "updated", header: "Changed", cell: ({ updated_at }) => <When at={updated_at} /> },
  ...(changes === undefined
    ? []
    : [
        {
          id: "actions",
          header: "Actions",
          main: true,
          width: 150,
          cell: (route: Route) => (
            <Group gap={0} wrap="nowrap">
              <Button
                variant="subtle"
                px={6}
                onClick={() => changes.onToggle(route)}
                aria-label={`${route.enabled ? "Disable" : "Enable"} ${route.route}`}
              >
                {route.enabled ? "Disable" : "Enable"}
              </Button>
              <Button variant="subtle" px={6} onClick={() => changes.onEdit(route)} aria-label={`Edit ${route.route}`}>
                Edit
              </Button>
            </Group>
          )
        }
      ])
]
