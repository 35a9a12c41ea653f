import { Button, Group, NumberInput, Select } from "@mantine/core"
import { useState } from "react"
import { call } from "../../api/control.ts"
import type { BodyOf } from "../../api/Endpoints.ts"
import { useAllowed } from "../../api/session.ts"
import { FormDrawer } from "../../shared/change/FormDrawer.tsx"
import { useConfirm } from "../../shared/change/useConfirm.tsx"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { LinkButton } from "../../shared/links/LinkButton.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { type Column, DataTable } from "../../shared/table/DataTable.tsx"
import { costText, type Endpoint, path, readService, type Service } from "./service.tsx"

type Rule = Service["endpoint_pricing_rules"][number]
interface Row extends Endpoint {
  readonly rule: Rule | undefined
}

const idOf = ({ method, path_template }: Pick<Endpoint, "method" | "path_template">): string =>
  `${method} ${path_template}`

/** The endpoints of the service's document, each with a price of its own or the service's. */
export const EndpointPrices = ({ service }: { readonly service: Service }) => {
  const mayChange = useAllowed("services:update")
  const [edited, setEdited] = useState<Row>()
  const rules = new Map(service.endpoint_pricing_rules.map((rule) => [idOf(rule), rule]))
  const rows = service.openapi_endpoints.map((endpoint): Row => ({ ...endpoint, rule: rules.get(idOf(endpoint)) }))
  return (
    <Panel flush>
      <DataTable
        name="endpoints"
        label="Endpoints"
        columns={columnsOf(service, mayChange ? setEdited : undefined)}
        rows={rows}
        rowId={idOf}
        empty={
          <Empty
            action={
              mayChange && (
                <LinkButton path={`/services/${encodeURIComponent(service.name)}`} search={{ tab: "openapi" }}>
                  Take over the document
                </LinkButton>
              )
            }
          >
            No endpoint is known. Take over the service’s OpenAPI document first.
          </Empty>
        }
      />
      {edited !== undefined && (
        <PriceForm key={idOf(edited)} service={service} row={edited} onClose={() => setEdited(undefined)} />
      )}
    </Panel>
  )
}

const columnsOf = (service: Service, onEdit: ((row: Row) => void) | undefined): ReadonlyArray<Column<Row>> => [
  { id: "endpoint", header: "Endpoint", cell: (row) => <code>{idOf(row)}</code> },
  { id: "summary", header: "Summary", cell: ({ summary }) => <ForeignText>{summary ?? "–"}</ForeignText> },
  {
    id: "price",
    header: "Price",
    main: true,
    cell: ({ rule, svc_default }) =>
      rule !== undefined
        ? costText(rule)
        : svc_default
          ? "none, as it is operational"
          : `${costText(service)}, as the service`
  },
  ...(onEdit === undefined
    ? []
    : [
        {
          id: "action",
          header: "Action",
          main: true,
          cell: (row: Row) => (
            <Button variant="subtle" px={6} onClick={() => onEdit(row)} aria-label={`Set the price of ${idOf(row)}`}>
              Set
            </Button>
          )
        }
      ])
]

const modes = ["none", "fixed", "passthrough"] as const

const PriceForm = ({
  onClose,
  row,
  service
}: {
  readonly service: Service
  readonly row: Row
  readonly onClose: () => void
}) => {
  const [mode, setMode] = useState<(typeof modes)[number]>(row.rule?.cost_mode ?? "fixed")
  const [amount, setAmount] = useState<number | null>(row.rule?.estimated_cost_usd ?? null)
  const { ask, dialog } = useConfirm<Service>()
  const save = (rule: Rule | undefined) => {
    const priceText = (one: Rule | undefined) => (one === undefined ? "as the service" : costText(one))
    const patch = (body: BodyOf<"PATCH", typeof path>) => call("PATCH", path, { params: { name: service.name }, body })
    ask({
      title: `Price of ${idOf(row)}`,
      action: "Change",
      guard: {
        base: service,
        reread: () => readService(service.name),
        fieldsOf: ({ endpoint_pricing_rules }) => ({
          price: priceText(endpoint_pricing_rules.find((one) => idOf(one) === idOf(row)))
        }),
        changes: { price: priceText(rule) }
      },
      // a patch replaces the prices of all endpoints
      run: ({ endpoint_pricing_rules, updated_at }: Service) => {
        const others = endpoint_pricing_rules.filter((one) => idOf(one) !== idOf(row))
        return patch({
          endpoint_pricing_rules: rule === undefined ? others : [...others, rule],
          expected_updated_at: updated_at
        })
      },
      undo: ({ endpoint_pricing_rules }: Service, { updated_at }: Service) =>
        patch({ endpoint_pricing_rules, expected_updated_at: updated_at }),
      done: `The price of ${idOf(row)} is set.`,
      audit: { type: "service", id: service.name },
      onDone: onClose
    })
  }
  const { method, operation_id, path_template } = row
  return (
    <>
      <FormDrawer
        title={idOf(row)}
        action="Show the difference"
        isBusy={false}
        error={null}
        onSubmit={() =>
          save({
            method,
            path_template,
            operation_id,
            cost_mode: mode,
            estimated_cost_usd: mode === "none" ? null : amount
          })
        }
        onClose={onClose}
      >
        <Select
          label="cost_mode"
          data={[...modes]}
          value={mode}
          onChange={(value) => setMode(modes.find((one) => one === value) ?? mode)}
          allowDeselect={false}
        />
        {mode !== "none" && (
          <NumberInput
            label="estimated_cost_usd"
            description={
              mode === "fixed"
                ? "The price of a request."
                : "Reserved before the response; then what it reports counts."
            }
            value={amount ?? ""}
            onChange={(value) => setAmount(typeof value === "number" ? value : null)}
            min={0}
            prefix="$"
          />
        )}
        {row.rule !== undefined && (
          <Group>
            <Button variant="default" onClick={() => save(undefined)}>
              Remove its own price
            </Button>
          </Group>
        )}
      </FormDrawer>
      {dialog}
    </>
  )
}
