import { csvLine } from "../words/saveText.ts"
import type { Column } from "./column.ts"

type Cell = string | number | null

/** The columns of the view, or all that the API says of the rows. Both under its own names: `policy.rpm_limit`. */
export const csvOf = <Row>(
  rows: ReadonlyArray<Row>,
  columns: ReadonlyArray<Pick<Column<Row>, "csv">> = [],
  note?: string
): string => {
  const parts = columns.flatMap(({ csv }) => (csv === undefined ? [] : [csv]))
  const partOf = (row: Row) => (part: (typeof parts)[number]) =>
    cellsOf(typeof part === "function" ? part(row) : Object.fromEntries(part.map((name) => [name, row[name]])), "")
  const flat = rows.map((row) => new Map(parts.length === 0 ? cellsOf(row, "") : parts.flatMap(partOf(row))))
  const names = [...new Set(flat.flatMap((cells) => [...cells.keys()]))]
  return [
    names,
    ...flat.map((cells) => names.map((name) => cells.get(name) ?? null)),
    ...(note === undefined ? [] : [[note]])
  ]
    .map(csvLine)
    .join("\r\n")
}

const cellsOf = (value: unknown, name: string): ReadonlyArray<readonly [name: string, cell: Cell]> => {
  if (Array.isArray(value)) return [[name, value.map((item) => textOf(item)).join(" ")]]
  if (typeof value === "object" && value !== null)
    return Object.entries(value).flatMap(([key, member]) => cellsOf(member, name === "" ? key : `${name}.${key}`))
  return [[name, value === null || typeof value === "number" ? value : textOf(value)]]
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""))
