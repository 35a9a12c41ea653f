import { notifications } from "@mantine/notifications"

/** True for a row and its cells themselves, and false for links and buttons in them. */
export const isOwn = (target: EventTarget): boolean =>
  target instanceof HTMLTableRowElement || target instanceof HTMLTableCellElement

/** The cell that has the focus, or the first one with a value of the row that has it. */
export const cellOf = (target: HTMLElement): HTMLTableCellElement | undefined => {
  const own = target.closest("td")
  if (own !== null) return own
  return target instanceof HTMLTableRowElement ? shownCells(target)[0] : undefined
}

/** Returns what an arrow key reaches from a row or a cell of it. The row itself comes before its first cell. */
export const beside = (
  from: HTMLTableRowElement | HTMLTableCellElement,
  step: 1 | -1
): HTMLTableRowElement | HTMLTableCellElement | undefined => {
  const row = from.closest("tr")
  if (row === null) return undefined
  const stops = [row, ...shownCells(row)]
  return stops[stops.indexOf(from) + step]
}

const shownCells = (row: HTMLTableRowElement): ReadonlyArray<HTMLTableCellElement> =>
  [...row.cells].filter((cell) => cell.dataset["label"] !== undefined && cell.offsetParent !== null)

/** A time is copied as the exact one, an id as a whole, and anything else as it is written. */
const textOf = (cell: HTMLTableCellElement): string => {
  const whole = cell.querySelector<HTMLElement>("[data-whole]")?.dataset["whole"]
  if (whole !== undefined) return whole
  const text = cell.innerText.trim()
  const time = cell.querySelector("time")
  return time !== null && time.innerText.trim() === text ? time.dateTime : text
}

export const copyCell = (cell: HTMLTableCellElement): void => {
  void navigator.clipboard.writeText(textOf(cell)).then(
    () => notifications.show({ message: `${cell.dataset["label"]} is copied.` }),
    () => notifications.show({ message: "The browser did not let the page copy.", color: "red" })
  )
}
