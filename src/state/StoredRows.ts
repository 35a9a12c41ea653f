/** A row that this version cannot decode: a newer version wrote it, or somebody changed it by hand. */
export interface UnreadableRow {
  readonly table: string
  /** The values of its key columns. */
  readonly row: string
  /** Why, without the row's content. */
  readonly why: string
}

/** How the rows of a table become values. */
export interface TableReader<A> {
  readonly name: string
  /** The columns that name a row in logs. */
  readonly key: ReadonlyArray<string>
  /** Throws where this version cannot decode the row. */
  readonly decode: (row: object) => A
  /** The closed reading of a row that cannot be decoded. Without one the row is left out. */
  readonly substitute?: (row: RowColumns) => A | undefined
}

export type RowColumns = Readonly<Record<string, unknown>>

/**
 * Decodes rows one by one, so that a row of another version costs nothing but itself. During a rolling upgrade, and
 * after a rollback, there may be one in every table.
 */
export class RowReader {
  readonly unreadable: Array<UnreadableRow> = []

  read<A>(table: TableReader<A>, rows: ReadonlyArray<object>): ReadonlyArray<A> {
    return rows.flatMap((row) => {
      try {
        return [table.decode(row)]
      } catch (error) {
        const columns: RowColumns = { ...row }
        this.unreadable.push({ table: table.name, row: nameOf(table.key, columns), why: reasonOf(error) })
        const instead = table.substitute?.(columns)
        return instead === undefined ? [] : [instead]
      }
    })
  }
}

const nameOf = (key: ReadonlyArray<string>, columns: RowColumns): string =>
  key
    .map((column) => columns[column])
    .filter((value) => value !== null && value !== undefined)
    .map(String)
    .join(":")
    .slice(0, 200)

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error)).slice(0, 500)
