import type { ReactNode } from "react"

export interface Column<Row> {
  readonly id: string
  readonly header: string
  readonly cell: (row: Row) => ReactNode
  /** At the right, for numbers. In a card its header stands before it. */
  readonly numeric?: boolean
  /** In the card that a narrow screen shows. The first column always is. What a person decides by belongs there. */
  readonly main?: boolean
  /** In a card its header stands before it, because nothing else says what it is. */
  readonly labelled?: boolean
  /** In a card it has a line of its own, which a long text breaks. */
  readonly wide?: boolean
  /** Is cut early, so that a table of many columns fits on a screen. A card shows all of it that has room. */
  readonly short?: boolean
  /** Shown only once a person asks for it. */
  readonly hidden?: boolean
  /** The server's name of the order, if it can order by this column. */
  readonly sort?: string
  /**
   * A file has these members of the row in place of the column, under the names of the API. A table whose columns say
   * nothing of files has all members of its rows in them.
   */
  readonly csv?: ReadonlyArray<keyof Row & string> | ((row: Row) => object)
  /** In pixels. Columns without one share the rest. */
  readonly width?: number
}

export interface Sorting {
  readonly by: string | undefined
  readonly onSort: (by: string) => void
  readonly isReversed?: boolean
}
