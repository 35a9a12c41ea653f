import type { SqlClient } from "effect/sql/SqlClient"
import type { Cursor } from "./api/Fields.ts"
import { Count } from "./Store.ts"

/** A page of a list that is ordered by time and id, newest first. Without `next` the list ends here. */
export interface Page<A> {
  readonly rows: ReadonlyArray<A>
  readonly next: Cursor | undefined
}

/** The column that a paged row carries beside its own: its time as the database keeps it. */
export const position = { micros: Count }

/** The parts of a statement over `table` (with `created_at` and `id`) that read one page. */
export const keyset = (
  sql: SqlClient,
  table: string,
  cursor: Cursor | undefined,
  direction: "newest_first" | "oldest_first" = "newest_first"
) => {
  const [beyond, order] = direction === "newest_first" ? ["<", "DESC"] : [">", "ASC"]
  const place = sql`(${sql(table)}.created_at, ${sql(table)}.id)`
  return {
    micros: sql`(extract(epoch FROM ${sql(table)}.created_at) * 1000000)::bigint AS micros`,
    /** The very columns of the order, so that an index can begin there. */
    behind:
      cursor === undefined
        ? sql`true`
        : sql`${place} ${sql.literal(beyond)} ('epoch'::timestamptz + ${cursor.micros}::bigint * interval '1 microsecond', ${cursor.id}::uuid)`,
    order: sql`${sql(table)}.created_at ${sql.literal(order)}, ${sql(table)}.id ${sql.literal(order)}`
  }
}

/** Cuts `rows`, read with a limit of one more than the page holds. */
export const page = <Row extends { readonly id: string; readonly micros: number }, A>(
  rows: ReadonlyArray<Row>,
  limit: number,
  show: (row: Row) => A
): Page<A> => {
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  return {
    rows: shown.map(show),
    next: rows.length > limit && last !== undefined ? { micros: last.micros, id: last.id } : undefined
  }
}
