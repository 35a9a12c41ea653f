import { createHash } from "node:crypto"
import { Effect, Schema } from "effect"
import type { SqlClient } from "effect/sql/SqlClient"
import { isSqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"
import * as SqlState from "../../services/SqlState.ts"
import { ControlError } from "../api/schema/Errors.ts"
import type { SortedCursor, SortOrder } from "../api/schema/Fields.ts"
import type { Page } from "./Paging.ts"
import { computedRows, type UnreadableRow } from "./Rows.ts"

/** An SQL expression that is never NULL, and its type. */
export type SortColumn = readonly [expression: string, type: "date" | "numeric" | "text" | "timestamptz" | "uuid"]

export interface SortedQuery {
  /** The last column is unique. */
  readonly columns: readonly [SortColumn, ...ReadonlyArray<SortColumn>]
  readonly order: SortOrder
  /** The filters and the order. A cursor of another query is refused. */
  readonly query: object
  readonly cursor: SortedCursor | undefined
  readonly limit: number
}

/** SQL fragments of one page. An index on the sort columns can start at the cursor. */
export interface SortedPosition {
  /** A column that the cursor of the next page is made of. */
  readonly sortKey: Fragment
  readonly afterCursor: Fragment
  readonly orderAndLimit: Fragment
}

/** Reads one page of a list whose query chooses the order. */
export const readSortedPage = Effect.fnUntraced(function* <Row, A, E, R>(
  sql: SqlClient,
  { columns, cursor, limit, order, query }: SortedQuery,
  readers: {
    readonly all: <E, R>(
      statement: Effect.Effect<ReadonlyArray<unknown>, E, R>
    ) => Effect.Effect<ReadonlyArray<Row>, E | UnreadableRow, R>
  },
  select: (position: SortedPosition) => Effect.Effect<ReadonlyArray<unknown>, E, R>,
  toItem: (row: Row) => A
) {
  const id = createHash("sha256").update(JSON.stringify(query)).digest("base64url").slice(0, 12)
  if (cursor !== undefined && (cursor.query !== id || cursor.after.length !== columns.length)) return yield* wrongCursor
  const expressions = columns.map(([expression]) => expression)
  const selected = yield* select({
    sortKey: sql.literal(`ARRAY[${expressions.map((expression) => `(${expression})::text`).join(", ")}] AS sort_key`),
    afterCursor: cursor === undefined ? sql`true` : after(sql, columns, order, cursor),
    orderAndLimit: sql`ORDER BY ${sql.literal(expressions.map((expression) => `${expression} ${order}`).join(", "))}
      LIMIT ${limit + 1}`
  }).pipe(
    // PostgreSQL refuses the values of a cursor that a client has changed.
    Effect.catchIf(
      (error) => cursor !== undefined && isSqlError(error) && SqlState.isCausedByValues(error),
      () => wrongCursor
    )
  )
  const [last] = yield* sortKeys.all(Effect.succeed(selected.length > limit ? [selected[limit - 1]] : []))
  const rows = yield* readers.all(Effect.succeed(selected.slice(0, limit)))
  const page: Page<A, SortedCursor> = {
    rows: rows.map(toItem),
    next: last === undefined ? undefined : { query: id, after: last.sort_key }
  }
  return page
})

const sortKeys = computedRows(Schema.Struct({ sort_key: Schema.Array(Schema.String) }))

const after = (
  sql: SqlClient,
  columns: ReadonlyArray<SortColumn>,
  order: SortOrder,
  cursor: SortedCursor
): Fragment => {
  const key = sql.literal(columns.map(([expression]) => expression).join(", "))
  const values = columns.map(([, type], index) => sql`${cursor.after[index] ?? ""}::${sql.literal(type)}`)
  return sql`(${key}) ${sql.literal(order === "asc" ? ">" : "<")} (${sql.csv(values)})`
}

const wrongCursor = new ControlError(
  "invalid_request",
  "The cursor belongs to another query. Send it with the filters and the order of the page that it came with, or leave it out.",
  { param: "cursor" }
)
