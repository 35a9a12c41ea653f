import { Stack } from "@mantine/core"
import { useTextSearch } from "../../address/search.ts"
import { useChosen } from "../../address/useChosen.ts"
import type { ResponseOf } from "../../api/Endpoints.ts"
import { useLiveRefresh } from "../../api/live.ts"
import { useApi } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { LinkButton } from "../../shared/links/LinkButton.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { Tile, Tiles } from "../../shared/page/Tile.tsx"
import { type Column, DataTable } from "../../shared/table/DataTable.tsx"
import { countText } from "../../shared/words/format.ts"
import { CoveredKeys, coveredKeysPath } from "./CoveredKeys.tsx"
import { outcomeOf, outcomes } from "./words/outcomes.ts"
import { Selections } from "./words/Selections.tsx"

const path = "/admin-ui/admin/guardrails/:name/coverage"
const liveTopics = ["configuration"] as const
type Layer = ResponseOf<"GET", typeof path>["layers"][number]

/** Which keys get the guardrail, and which policies say so. */
export const Coverage = ({ name }: { readonly name: string }) => {
  const { change, text } = useTextSearch()
  const coverage = useApi(path, { params: { name } })
  useLiveRefresh(liveTopics, [path, coveredKeysPath])
  const mayChange = useAllowed("policies:update")
  const { data } = coverage
  const { choose, chosen } = useChosen(text("outcome"), (outcome: string | undefined) => change({ outcome }))
  return (
    <Stack gap="sm">
      <Tiles>
        {outcomes.map(({ detail, label, outcome }) => (
          <Tile
            key={outcome}
            label={label}
            query={coverage}
            value={data && countText(data.keys[outcome])}
            detail={detail}
            choice={{
              isChosen: outcome === chosen,
              onChange: (isChosen) => choose(isChosen ? outcome : undefined)
            }}
          />
        ))}
      </Tiles>
      <CoveredKeys name={name} chosen={outcomeOf(text("outcome"))} />
      <Panel
        title="Layers that name it"
        note="Layers of a route or model concern some requests of a key, so they are not in the counts."
        query={coverage}
        height={120}
        flush
      >
        <DataTable
          name="guardrail-layers"
          label="Layers"
          columns={layerColumns}
          rows={data?.layers ?? []}
          rowId={({ id }) => id}
          empty={
            <Empty action={mayChange && <LinkButton path="/policies">Policy layers</LinkButton>}>
              No policy layer in force names this guardrail.
            </Empty>
          }
        />
      </Panel>
    </Stack>
  )
}

const layerColumns: ReadonlyArray<Column<Layer>> = [
  { id: "kind", header: "Layer", cell: ({ kind }) => kind },
  {
    id: "scope",
    header: "Of",
    main: true,
    cell: ({ scope_name }) => <ForeignText>{scope_name ?? "all requests"}</ForeignText>
  },
  { id: "selections", header: "Selection", main: true, cell: (layer) => <Selections of={layer} /> }
]

/** Whom a change of the guardrail concerns, for the dialog that asks. */
export const CoverageSentence = ({ name }: { readonly name: string }) => {
  const { data, error } = useApi(path, { params: { name } })
  if (error !== null) return <p>Which keys it concerns is not known: {error.message}</p>
  if (data === undefined) return <p>Counting the keys that it concerns…</p>
  const { by_default, mandatory, optional } = data.keys
  return (
    <p>
      {countText(mandatory)} keys have it as mandatory, {countText(by_default)} get it by default, and{" "}
      {countText(optional)} may ask for it.
    </p>
  )
}
