import { Button } from "@mantine/core"
import { useTextSearch } from "../../address/search.ts"
import { useLiveRefresh } from "../../api/live.ts"
import { useApiList } from "../../api/queries.ts"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { Empty } from "../../shared/page/Empty.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { fieldText, type PolicyField, restrictingOf } from "../../shared/policy/fields.ts"
import { usePolicyFields } from "../../shared/policy/usePolicyFields.ts"
import { type Column, DataTable } from "../../shared/table/DataTable.tsx"
import { DetailDrawer } from "../../shared/table/DetailDrawer.tsx"
import { EmptyList } from "../../shared/table/EmptyList.tsx"
import { FilterBar } from "../../shared/table/FilterBar.tsx"
import { curlOf } from "../../shared/words/CopyAs.tsx"
import { StatusWord } from "../../shared/words/StatusWord.tsx"
import { When } from "../../shared/words/When.tsx"
import { LayerDetail } from "./LayerDetail.tsx"
import { type Layer, layerName, layersPath } from "./words/layer.ts"
import styles from "./words/Policies.module.css"

const liveTopics = ["configuration"] as const
const pageSize = 100
const empty: ReadonlyArray<PolicyField> = []

/** The request of the matrix for the layers. */
export const layersRequest = <Kind extends string>(kind: Kind | undefined) => ({ query: { kind, limit: pageSize } })

/** Layers and fields: a row for each layer, and a column for each field that some layer restricts. */
export const LayerMatrix = () => {
  const { change, text } = useTextSearch()
  const described = usePolicyFields()
  const kind = described.data?.layer_kinds.find((one) => one === text("kind"))
  const list = useApiList(layersPath, layersRequest(kind))
  useLiveRefresh(liveTopics, [layersPath])
  const fields = described.data?.fields ?? empty
  const filters = [{ name: "kind", label: "Kind", choices: [...(described.data?.layer_kinds ?? [])] }]
  return (
    <>
      <Panel query={list.query} height={360} flush>
        {(instead) => (
          <DataTable
            instead={instead}
            name="layers"
            label="Policy layers"
            columns={columnsOf(list.rows, fields)}
            rows={inOrder(list.rows, described.data?.layer_kinds ?? [])}
            rowId={({ id }) => id}
            onOpen={({ id }) => change({ open: id })}
            openId={text("open")}
            list={list}
            toolbar={<FilterBar filters={filters} />}
            empty={
              <EmptyList filters={filters} unmatched="No layer is of this kind.">
                <Empty
                  action={<Button onClick={() => change({ do: "create" })}>Create a layer</Button>}
                  command={curlOf({
                    method: "POST",
                    address: layersPath,
                    body: {
                      kind: "team",
                      scope_id: "blue",
                      policy: { rpm_limit: 60 },
                      shared: { monthly_budget_usd: 50 }
                    }
                  })}
                >
                  There is no layer, so only the policies of the keys themselves restrict anything.
                </Empty>
              </EmptyList>
            }
          />
        )}
      </Panel>
      <DetailDrawer title={() => "Policy layer"}>{(id) => <LayerDetail id={id} />}</DetailDrawer>
    </>
  )
}

/** From general to specific, as they apply. */
const inOrder = (layers: ReadonlyArray<Layer>, kinds: ReadonlyArray<string>): ReadonlyArray<Layer> =>
  layers.toSorted((a, b) => kinds.indexOf(a.kind) - kinds.indexOf(b.kind) || layerName(a).localeCompare(layerName(b)))

const columnsOf = (layers: ReadonlyArray<Layer>, fields: ReadonlyArray<PolicyField>): ReadonlyArray<Column<Layer>> => {
  const isSet = (field: PolicyField, part: (layer: Layer) => object) =>
    layers.some((layer) => Object.hasOwn(restrictingOf([field], { ...part(layer) }), field.field))
  const column = (field: PolicyField, prefix: string, part: (layer: Layer) => object): Column<Layer> => ({
    id: prefix + field.field,
    header: prefix + field.field,
    numeric: field.kind === "count" || field.kind === "dollars",
    cell: (layer) => {
      const values = restrictingOf([field], { ...part(layer) })
      return Object.hasOwn(values, field.field) ? fieldText(field, values[field.field]) : ""
    }
  })
  const own = ({ policy }: Layer) => policy
  const shared = ({ shared: limits }: Layer) => limits
  return [
    {
      id: "layer",
      header: "Layer",
      width: 210,
      cell: (layer) => <ForeignText className={styles.name}>{layerName(layer)}</ForeignText>
    },
    {
      id: "state",
      header: "State",
      main: true,
      width: 90,
      cell: ({ enabled }) => <StatusWord meaning={enabled ? "good" : "idle"}>{enabled ? "on" : "off"}</StatusWord>
    },
    ...fields.filter((field) => isSet(field, own)).map((field) => column(field, "", own)),
    ...fields.filter((field) => isSet(field, shared)).map((field) => column(field, "shared.", shared)),
    {
      id: "guardrails",
      header: "Guardrails",
      cell: ({ guardrail_policy: { forbidden_guardrails, mandatory_guardrails, optional_guardrails } }) =>
        [
          ...mandatory_guardrails.map((name) => `+${name}`),
          ...optional_guardrails.map((name) => `±${name}`),
          ...forbidden_guardrails.map((name) => `−${name}`)
        ].join(" ")
    },
    { id: "changed", header: "Changed", main: true, width: 120, cell: ({ updated_at }) => <When at={updated_at} /> }
  ]
}
