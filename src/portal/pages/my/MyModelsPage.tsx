import { Button } from "@mantine/core"
import { Link } from "@tanstack/react-router"
import { useMemo, useState } from "react"
import { useApi } from "../../api/queries.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { LinkButton } from "../../shared/links/LinkButton.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { PageHeader } from "../../shared/page/PageHeader.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { type Column, DataTable } from "../../shared/table/DataTable.tsx"
import { Count, Money } from "../../shared/words/Amounts.tsx"
import { Command } from "./common/Command.tsx"
import { type ModelRow, modelRows } from "./common/modelRows.ts"
import { useModels } from "./common/useModels.ts"
import { RaiseButton } from "./raise/RaiseButton.tsx"

const dayMs = 86_400_000

/** Which models the key may call, what they cost, and what the key has used of them. */
const MyModelsPage = () => {
  const models = useModels()
  const [from] = useState(() => {
    const now = Date.now()
    return new Date(now - (now % dayMs) - 29 * dayMs).toISOString()
  })
  const usage = useApi("/admin-ui/v1/me/usage", { query: { from, interval: "day", split: "model" } })
  const buckets = usage.data?.buckets
  const { names, priced, used } = models
  const rows = useMemo(() => modelRows(names, { priced, used }, buckets ?? []), [names, priced, used, buckets])
  return (
    <>
      <PageHeader
        title="Models"
        actions={
          <>
            {models.query.data !== undefined && !models.allowsAll && <RaiseButton model="" />}
            <Command address="/admin-ui/v1/me/models" />
          </>
        }
        lead={
          models.allowsAll
            ? "You may call every model that the gateway has. These have a price, or you have used them."
            : models.patterns.length > 0
              ? `You may call these, and models whose names begin with ${models.patterns.map((name) => name.slice(0, -1)).join(", ")}.`
              : "You may call these."
        }
      />
      <Panel query={models.query} height={200} flush>
        <DataTable
          name="my-models"
          label="Models"
          columns={rows.some(({ note }) => note) ? columns : columnsWithoutNote}
          rows={rows}
          rowId={({ model }) => model}
          empty={
            <Empty action={<LinkButton path="/my/use">See how to send a request</LinkButton>}>
              No model has a price here, and you have used none yet.
            </Empty>
          }
        />
      </Panel>
    </>
  )
}

const columns: ReadonlyArray<Column<ModelRow>> = [
  { id: "model", header: "Model", cell: ({ model }) => <ForeignText>{model}</ForeignText> },
  {
    id: "price",
    header: "Price of a million tokens",
    main: true,
    cell: ({ input, output }) =>
      input === undefined || output === undefined ? (
        "no price"
      ) : (
        <>
          <Money usd={input} /> in · <Money usd={output} /> out
        </>
      )
  },
  { id: "note", header: "Note", cell: ({ note }) => note ?? "" },
  { id: "requests", header: "Requests, 30 days", numeric: true, cell: ({ requests }) => <Count of={requests} /> },
  { id: "tokens", header: "Tokens", numeric: true, cell: ({ tokens }) => <Count of={tokens} short /> },
  { id: "spent", header: "Spent", numeric: true, cell: ({ spent }) => <Money usd={spent} /> },
  {
    id: "use",
    header: "Use it",
    main: true,
    cell: ({ model }) => (
      <Button
        variant="subtle"
        renderRoot={(props) => <Link to="/my/use" search={{ model }} {...props} />}
        aria-label={`Use ${model}`}
      >
        Use
      </Button>
    )
  }
]

const columnsWithoutNote = columns.filter(({ id }) => id !== "note")

export default MyModelsPage
