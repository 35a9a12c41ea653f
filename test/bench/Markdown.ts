import { median, paired, quartiles, spread } from "./Statistics.ts"

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

/** The ratio of samples that were taken by turns, with its quartiles. */
export const ratioCell = (mine: ReadonlyArray<number>, theirs: ReadonlyArray<number>): string => {
  const ratios = paired(mine, theirs, (a, b) => a / b)
  const [lower, upper] = quartiles(ratios).map((ratio) => number(ratio, 2))
  return `${number(median(ratios), 2)} (${lower}–${upper})`
}

export const row = (cells: ReadonlyArray<string>): string => `| ${cells.join(" | ")} |`

export const line = (reached: boolean, text: string): string => `- ${reached ? "reached" : "**missed**"}: ${text}`
