import type { ReactNode } from "react"

export interface Column<Row> {
  readonly id: string
  readonly header: string
  readonly cell: (row: Row) => ReactNode
  /** At the right, for numbers. */
  readonly numeric?: boolean
  /** One of the few that a narrow screen shows. The first column always is. */
  readonly main?: boolean
  /** Shown only once a person asks for it. */
  readonly hidden?: boolean
  /** The server's name of the order, if it can order by this column. */
  readonly sort?: string
  /** In pixels. Columns without one share the rest. */
  readonly width?: number
}

export interface Sorting {
  readonly by: string | undefined
  readonly onSort: (by: string) => void
  readonly isReversed?: boolean
}
