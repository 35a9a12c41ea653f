import { median, spread } from "./Statistics.ts"

/** Pieces of a report in Markdown. */

export const number = (value: number, digits: number): string =>
  Number.isNaN(value)
    ? "–"
    : value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits })

export const cell = (values: ReadonlyArray<number>, digits: number): string => {
  if (values.length === 0) return "–"
  const middle = number(median(values), digits)
  const [least, most] = spread(values).map((value) => number(value, digits))
  return least === most ? middle : `${middle} (${least}–${most})`
}

export const row = (cells: ReadonlyArray<string>): string => `| ${cells.join(" | ")} |`

export const line = (reached: boolean, text: string): string => `- ${reached ? "reached" : "**missed**"}: ${text}`
