import { Stack } from "@mantine/core"
import type { ResponseOf } from "../../api/Endpoints.ts"
import { useApi } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { LinkButton } from "../../shared/links/LinkButton.tsx"
import { PathLink } from "../../shared/links/PathLink.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { Tile, Tiles } from "../../shared/page/Tile.tsx"
import { type Column, DataTable } from "../../shared/table/DataTable.tsx"
import { countText } from "../../shared/words/format.ts"

type Covered = ResponseOf<"GET", "/admin-ui/admin/guardrails/:name/coverage">
type Layer = Covered["layers"][number]
type OwnKey = Covered["own_keys"][number]

const path = "/admin-ui/admin/guardrails/:name/coverage"

const kinds: ReadonlyArray<readonly [name: keyof Covered["keys"], label: string, detail: string]> = [
  ["mandatory", "Mandatory", "a policy demands it"],
  ["by_default", "By default", "every request, as it is on by default"],
  ["optional", "Optional", "a request may ask for it"],
  ["forbidden", "Forbidden", "requests pass without it"],
  ["refused", "Refused", "demanded, and forbidden or disabled"],
  ["none", "Not selected", "no policy names it"]
]

/** Which keys get the guardrail, and which policies say so. */
export const Coverage = ({ name }: { readonly name: string }) => {
  const coverage = useApi(path, { params: { name } })
  const mayChange = useAllowed("policies:update")
  const { data } = coverage
  return (
    <Stack gap="sm">
      <Tiles>
        {kinds.map(([kind, label, detail]) => (
          <Tile key={kind} label={label} query={coverage} value={data && countText(data.keys[kind])} detail={detail} />
        ))}
      </Tiles>
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
              No policy layer names this guardrail.
            </Empty>
          }
        />
      </Panel>
      <Panel
        title="Keys whose own policy names it"
        note={data?.has_more_keys === true ? "The newest 100 are shown." : undefined}
        query={coverage}
        height={120}
        flush
      >
        <DataTable
          name="guardrail-keys"
          label="Keys"
          columns={keyColumns}
          rows={data?.own_keys ?? []}
          rowId={({ id }) => id}
          empty={
            <Empty action={<LinkButton path="/keys">All keys</LinkButton>}>
              No key names this guardrail in its own policy.
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
  { id: "selection", header: "Selection", main: true, cell: ({ selection }) => <code>{selection}</code> }
]

const keyColumns: ReadonlyArray<Column<OwnKey>> = [
  {
    id: "key",
    header: "Key",
    cell: ({ id, key_prefix, name }) => (
      <PathLink path={`/keys/${encodeURIComponent(id)}`}>{name ?? key_prefix}</PathLink>
    )
  },
  { id: "prefix", header: "Prefix", cell: ({ key_prefix }) => <code>{key_prefix}</code> },
  { id: "selection", header: "Selection", main: true, cell: ({ selection }) => <code>{selection}</code> }
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
