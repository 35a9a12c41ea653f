import { Switch, Table } from "@mantine/core"
import { useState } from "react"
import type { ResponseOf } from "../../api/Endpoints.ts"
import { ForeignText } from "../foreign/ForeignText.tsx"
import styles from "./EffectiveTable.module.css"
import { fieldText, type PolicyField } from "./fields.ts"
import { usePolicyFields } from "./usePolicyFields.ts"

export type EffectivePolicy = ResponseOf<"GET", "/admin-ui/admin/policy/effective">
type EffectiveLayer = EffectivePolicy["layers"][number]

const kindWords: Readonly<Record<string, string>> = {
  global: "all keys",
  project: "project",
  team: "team",
  route: "route",
  model: "model",
  key: "this key"
}

/** A layer by the name that people know: `team blue`, `this key`. */
export const LayerName = ({ kind, name }: Pick<EffectiveLayer, "kind" | "name">) => (
  <span className={styles.layer} data-own={kind === "key" || undefined}>
    {kindWords[kind] ?? kind}
    {kind !== "global" && kind !== "key" && (
      <>
        {" "}
        <ForeignText>{name}</ForeignText>
      </>
    )}
  </span>
)

/** The value of each field that holds, with the layers that set it. */
export const EffectiveTable = ({ effective }: { readonly effective: EffectivePolicy }) => {
  const [isWhole, setWhole] = useState(false)
  const { data: described } = usePolicyFields()
  const shown = effective.fields.filter(({ layers }) => isWhole || layers.length > 0)
  const fieldOf = (name: string) => described?.fields.find(({ field }) => field === name)
  return (
    <>
      <div className={styles.tools}>
        <span>
          {effective.fields.filter(({ layers }) => layers.length > 0).length} of {effective.fields.length} fields are
          restricted.
        </span>
        <Switch
          label="Show all fields"
          checked={isWhole}
          onChange={({ currentTarget }) => setWhole(currentTarget.checked)}
        />
      </div>
      {shown.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reached with the keyboard
        <section className={styles.scroller} tabIndex={0} aria-label="Fields of the effective policy">
          <Table>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Field</Table.Th>
                <Table.Th>Effective</Table.Th>
                <Table.Th>Set by</Table.Th>
                <Table.Th>Also set, without effect</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {shown.map((row) => (
                <Row key={row.field} row={row} described={fieldOf(row.field)} layers={effective.layers} />
              ))}
            </Table.Tbody>
          </Table>
        </section>
      )}
    </>
  )
}

interface RowProps {
  readonly row: EffectivePolicy["fields"][number]
  readonly described: PolicyField | undefined
  readonly layers: ReadonlyArray<EffectiveLayer>
}

const Row = ({ described, layers, row }: RowProps) => {
  const named = (id: string) => layers.find(({ layer }) => layer === id)
  const text = (value: unknown) => (described === undefined ? JSON.stringify(value) : fieldText(described, value))
  const weaker = row.layers.filter(({ layer }) => !row.set_by.includes(layer))
  return (
    <Table.Tr>
      <Table.Th scope="row" title={described?.help}>
        <code>{row.field}</code>
      </Table.Th>
      <Table.Td className={styles.value}>
        {text(row.value)}
        {row.raised && <span className={styles.note}> raised</span>}
      </Table.Td>
      <Table.Td>
        {row.set_by.map((id) => {
          const layer = named(id)
          return layer === undefined ? <code key={id}>{id}</code> : <LayerName key={id} {...layer} />
        })}
        {row.set_by.length === 0 && <span className={styles.note}>{row.raised ? "an exception" : "nothing"}</span>}
      </Table.Td>
      <Table.Td>
        {weaker.map(({ layer: id, value }) => {
          const layer = named(id)
          return (
            <span key={id} className={styles.weaker}>
              {layer === undefined ? <code>{id}</code> : <LayerName {...layer} />} {text(value)}
            </span>
          )
        })}
      </Table.Td>
    </Table.Tr>
  )
}
