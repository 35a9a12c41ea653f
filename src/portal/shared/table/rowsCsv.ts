import { csvLine } from "../words/saveText.ts"

type Cell = string | number | null

/** Rows with all that the API says of them, under its own names: `policy.rpm_limit`. */
export const csvOf = (rows: ReadonlyArray<unknown>): string => {
  const flat = rows.map((row) => new Map(cellsOf(row, "")))
  const columns = [...new Set(flat.flatMap((cells) => [...cells.keys()]))]
  return [columns, ...flat.map((cells) => columns.map((name) => cells.get(name) ?? null))].map(csvLine).join("\r\n")
}

const cellsOf = (value: unknown, name: string): ReadonlyArray<readonly [name: string, cell: Cell]> => {
  if (Array.isArray(value)) return [[name, value.map((item) => textOf(item)).join(" ")]]
  if (typeof value === "object" && value !== null)
    return Object.entries(value).flatMap(([key, member]) => cellsOf(member, name === "" ? key : `${name}.${key}`))
  return [[name, value === null || typeof value === "number" ? value : textOf(value)]]
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""))
