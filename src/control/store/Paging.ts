import { Effect, Schema } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Cursor } from "../api/schema/Fields.ts"
import { Count, computedRows, type UnreadableRow } from "./Rows.ts"

/** `next` is `undefined` on the last page. */
export interface Page<A, Position = Cursor> {
  readonly rows: ReadonlyArray<A>
  readonly next: Position | undefined
}

/** SQL fragments for one page of a table that is sorted by `created_at` and `id`. */
export const keyset = (
  sql: SqlClient,
  table: string,
  cursor: Cursor | undefined,
  direction: "newest_first" | "oldest_first" = "newest_first"
) => {
  const [comparison, order] = direction === "newest_first" ? ["<", "DESC"] : [">", "ASC"]
  const sortKey = sql`(${sql(table)}.created_at, ${sql(table)}.id)`
  return {
    micros: micros(sql, table),
    /** Compares the plain columns, so that an index scan can start at the cursor. */
    afterCursor:
      cursor === undefined
        ? sql`true`
        : sql`${sortKey} ${sql.literal(comparison)} ('epoch'::timestamptz + ${cursor.micros}::bigint * interval '1 microsecond', ${cursor.id}::uuid)`,
    order: sql`${sql(table)}.created_at ${sql.literal(order)}, ${sql(table)}.id ${sql.literal(order)}`
  }
}

/**
 * `statement` must select one row more than the page has. A row that cannot be decoded still counts, so that the next
 * page starts after it.
 */
export const readPage = Effect.fnUntraced(function* <Row, A, E, R>(
  readers: {
    readonly all: <E, R>(
      statement: Effect.Effect<ReadonlyArray<unknown>, E, R>
    ) => Effect.Effect<ReadonlyArray<Row>, E | UnreadableRow, R>
  },
  statement: Effect.Effect<ReadonlyArray<unknown>, E, R>,
  limit: number,
  toItem: (row: Row) => A
) {
  const selected = yield* statement
  const next = selected.length > limit ? yield* cursorRows.only(Effect.succeed([selected[limit - 1]])) : undefined
  const rows = yield* readers.all(Effect.succeed(selected.slice(0, limit)))
  const page: Page<A> = { rows: rows.map(toItem), next }
  return page
})

const cursorRows = computedRows(Schema.Struct({ micros: Count, id: Schema.String }))

/** Times are limited to this range, because an `infinity` timestamp has no number of microseconds. */
const maxMicros = Number.MAX_SAFE_INTEGER

/** The cursor needs microseconds. A JavaScript date would round the time to milliseconds. */
export const micros = (sql: SqlClient, table: string) =>
  sql`least(greatest(extract(epoch FROM ${sql(table)}.created_at) * 1000000, -${maxMicros}::bigint), ${maxMicros}::bigint)::bigint AS micros`
