import { notifications } from "@mantine/notifications"
import { useEffect, useRef, useState } from "react"
import type { List } from "../../api/queries.ts"
import { countedText, countText } from "../words/format.ts"
import { saveText } from "../words/saveText.ts"
import type { Column } from "./column.ts"
import { csvOf } from "./rowsCsv.ts"

/** A browser and a spreadsheet carry so many rows well. */
const mostRows = 20_000

export interface View<Row> {
  readonly name: string
  /** Those that are shown. */
  readonly columns: ReadonlyArray<Column<Row>>
  readonly rows: ReadonlyArray<Row>
  readonly list: List<Row> | undefined
}

/**
 * Saves a view as a file, with the rows too that are not shown yet: these are read page by page, which can be stopped.
 * `read` is how many were read, or `undefined` while nothing is.
 */
export const useCsv = <Row>({ columns, list, name, rows }: View<Row>) => {
  const [read, setRead] = useState<number>()
  const stopper = useRef<AbortController>(null)
  useEffect(() => () => stopper.current?.abort(), [])
  const pages = list?.query.hasNextPage === true ? list.readPages : undefined
  const save = (all: ReadonlyArray<Row>, note?: string) =>
    saveText(`${name}.csv`, "text/csv", csvOf(all, columns, note))
  const run = async () => {
    if (pages === undefined) return save(rows)
    const current = new AbortController()
    const { signal } = current
    stopper.current = current
    setRead(0)
    try {
      const { all, note } = await allOf(pages(signal), setRead)
      save(all, note)
      notifications.show({ message: [`${countedText(all.length, "row is", "rows are")} in the file.`, note].join(" ") })
    } catch (cause) {
      if (!signal.aborted)
        notifications.show({ color: "red", message: cause instanceof Error ? cause.message : String(cause) })
    }
    setRead(undefined)
  }
  return { hasMore: pages !== undefined, read, run, stop: () => stopper.current?.abort() }
}

const allOf = async <Row>(pages: AsyncIterable<ReadonlyArray<Row>>, onRead: (count: number) => void) => {
  const all: Array<Row> = []
  for await (const page of pages) {
    if (all.length + page.length > mostRows || (all.length === mostRows && page.length > 0))
      return {
        all: [...all, ...page].slice(0, mostRows),
        note: `There are more: the file ends after ${countText(mostRows)} rows.`
      }
    all.push(...page)
    onRead(all.length)
  }
  return { all, note: undefined }
}
