import { Alert, Button, Stack } from "@mantine/core"
import { useState } from "react"
import { useAllowed } from "../../api/session.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { LinkButton } from "../../shared/links/LinkButton.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { type Column, DataTable } from "../../shared/table/DataTable.tsx"
import { countedText } from "../../shared/words/format.ts"
import { StatusWord } from "../../shared/words/StatusWord.tsx"
import { nameOf, type Row, rowsOf } from "./endpointRows.ts"
import { PriceForm } from "./PriceForm.tsx"
import { costText, type Service } from "./service.tsx"
import { usePriceChange } from "./usePriceChange.tsx"

/** The prices of the endpoints of the service's document, and those whose endpoints the document no longer has. */
export const EndpointPrices = ({ service }: { readonly service: Service }) => {
  const mayChange = useAllowed("services:update")
  const [edited, setEdited] = useState<Row>()
  const { change, dialog } = usePriceChange(service)
  const rows = rowsOf(service)
  const stale = rows.filter(({ isStale }) => isStale)
  const remove = (removed: ReadonlyArray<Row>) =>
    change({
      title: "Remove stale prices",
      rows: removed,
      price: undefined,
      done: removed.length === 1 ? "The stale price is removed." : `${removed.length} stale prices are removed.`
    })
  return (
    <Stack gap="sm">
      {stale.length > 0 && (
        <Alert color="gray" title={countedText(stale.length, "stale price")}>
          The document of the service lacks what is marked stale. Such prices hold for requests until somebody removes
          them.
          {mayChange && stale.length > 1 && (
            <Button variant="default" display="block" mt="xs" onClick={() => remove(stale)}>
              Remove all of them
            </Button>
          )}
        </Alert>
      )}
      <Panel flush>
        <DataTable
          name="endpoints"
          label="Endpoints"
          columns={columnsOf(service, mayChange ? { onEdit: setEdited, onRemove: (row) => remove([row]) } : undefined)}
          rows={rows}
          rowId={nameOf}
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
      </Panel>
      {edited !== undefined && (
        <PriceForm key={nameOf(edited)} service={service} row={edited} onClose={() => setEdited(undefined)} />
      )}
      {dialog}
    </Stack>
  )
}

interface Changes {
  readonly onEdit: (row: Row) => void
  readonly onRemove: (row: Row) => void
}

const columnsOf = (service: Service, changes: Changes | undefined): ReadonlyArray<Column<Row>> => [
  {
    id: "endpoint",
    header: "Endpoint",
    cell: (row) => (
      <>
        <code>{nameOf(row)}</code> {row.isStale && <StatusWord meaning="warning">stale</StatusWord>}
      </>
    )
  },
  { id: "summary", header: "Summary", cell: ({ summary }) => <ForeignText>{summary ?? "–"}</ForeignText> },
  {
    id: "price",
    header: "Price",
    main: true,
    cell: ({ price, svc_default }) =>
      price !== undefined
        ? costText(price)
        : svc_default
          ? "none, as it is operational"
          : `${costText(service)}, as the service`
  },
  ...(changes === undefined
    ? []
    : [
        {
          id: "action",
          header: "Action",
          main: true,
          cell: (row: Row) =>
            row.isStale ? (
              <Button
                variant="subtle"
                px={6}
                c="red"
                onClick={() => changes.onRemove(row)}
                aria-label={`Remove the price of ${nameOf(row)}`}
              >
                Remove
              </Button>
            ) : (
              <Button
                variant="subtle"
                px={6}
                onClick={() => changes.onEdit(row)}
                aria-label={`Set the price of ${nameOf(row)}`}
              >
                Set
              </Button>
            )
        }
      ])
]
