/** A database row that this version cannot decode, because a newer version wrote it or somebody edited it. */
export interface UnreadableRow {
  readonly table: string
  readonly row: string
  readonly why: string
}

export interface TableReader<A> {
  readonly name: string
  readonly key: ReadonlyArray<string>
  /** Throws if this version cannot decode the row. */
  readonly decode: (row: object) => A
  /** Returns a restrictive replacement for a row that cannot be decoded. Without a replacement the row is skipped. */
  readonly substitute?: (row: RowColumns) => A | undefined
}

export type RowColumns = Readonly<Record<string, unknown>>

/** Decodes each row separately, because one row that cannot be decoded must not affect the other rows. */
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
