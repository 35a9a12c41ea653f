/** Lets the browser save a text as a file. */
export const saveText = (name: string, type: string, text: string): void => {
  const url = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }))
  const link = document.createElement("a")
  link.href = url
  link.download = name
  link.click()
  URL.revokeObjectURL(url)
}

/** Spreadsheets run such text as a formula. An apostrophe before it keeps them from doing so. */
const formula = /^(?:[\t\r\n]|\s*[=+\-@＝＋－＠])/

const csvCell = (value: string | number | null): string => {
  if (typeof value !== "string") return String(value ?? "")
  const safe = formula.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** One line of a file of comma-separated values. */
export const csvLine = (values: ReadonlyArray<string | number | null>): string => values.map(csvCell).join(",")
