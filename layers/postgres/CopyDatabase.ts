import { Effect } from "effect"
import type { SqlClient, SqlError } from "effect/sql"

interface Column {
  readonly name: string
  readonly type: string
}

interface Table {
  readonly name: string
  readonly columns: ReadonlyArray<Column>
}

export interface CopiedTable {
  readonly name: string
  readonly rows: number
}

const rowsPerStatement = 500

const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** Returns whether the database has no tables, views or sequences. */
export const isEmpty = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient
): Effect.fn.Return<boolean, SqlError.SqlError> {
  const found = yield* sql`
    SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
    LIMIT 1`
  return found.length === 0
})

/**
 * Copies all rows and sequences into a database with the same schema, whose rows are replaced. Both databases must be in
 * a transaction. Values travel as text, so that every type keeps its exact value.
 */
export const copy = Effect.fnUntraced(function* (
  source: SqlClient.SqlClient,
  target: SqlClient.SqlClient
): Effect.fn.Return<ReadonlyArray<CopiedTable>, SqlError.SqlError> {
  const tables = yield* tablesOf(source)
  const names = tables.map(({ name }) => quote(name)).join(", ")
  yield* target.unsafe(`TRUNCATE ${names}`)
  const copied: Array<CopiedTable> = []
  for (const table of inOrder(tables, yield* referencesOf(source))) {
    const name = quote(table.name)
    // The triggers already ran when the rows were written.
    yield* target.unsafe(`ALTER TABLE ${name} DISABLE TRIGGER USER`)
    yield* copyRows(source, target, table)
    yield* target.unsafe(`ALTER TABLE ${name} ENABLE TRIGGER USER`)
    const [expected, actual] = [yield* countOf(source, name), yield* countOf(target, name)]
    if (expected !== actual) {
      return yield* Effect.die(`The table ${table.name} has ${expected} rows, but ${actual} rows arrived`)
    }
    copied.push({ name: table.name, rows: actual })
  }
  yield* copySequences(source, target)
  return copied
})

const copyRows = Effect.fnUntraced(function* (
  source: SqlClient.SqlClient,
  target: SqlClient.SqlClient,
  { columns, name }: Table
) {
  const texts = columns.map((column) => `${quote(column.name)}::text`).join(", ")
  const values = columns.map(({ type }, index) => `(value ->> ${index})::${type}`).join(", ")
  const insert = `INSERT INTO ${quote(name)} (${columns.map((column) => quote(column.name)).join(", ")})
    OVERRIDING SYSTEM VALUE SELECT ${values} FROM json_array_elements($1::json) AS value`
  yield* source.unsafe(
    `DECLARE copied NO SCROLL CURSOR FOR SELECT json_build_array(${texts})::text AS value FROM ${quote(name)}`
  )
  for (;;) {
    const rows = yield* source.unsafe<{ value: string }>(`FETCH ${rowsPerStatement} FROM copied`)
    if (rows.length === 0) break
    yield* target.unsafe(insert, [`[${rows.map(({ value }) => value).join(",")}]`])
  }
  yield* source.unsafe("CLOSE copied")
})

const countOf = (sql: SqlClient.SqlClient, name: string): Effect.Effect<number, SqlError.SqlError> =>
  Effect.map(sql.unsafe<{ count: number }>(`SELECT count(*)::float8 AS count FROM ${name}`), ([row]) => row?.count ?? 0)

const tablesOf = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient
): Effect.fn.Return<ReadonlyArray<Table>, SqlError.SqlError> {
  const columns = yield* sql<Column & { readonly table: string }>`
    SELECT c.relname AS table, a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
      AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
    ORDER BY c.relname, a.attnum`
  return Array.from(
    Map.groupBy(columns, ({ table }) => table),
    ([name, columns]) => ({ name, columns })
  )
})

/** The tables that each table refers to by foreign keys. */
const referencesOf = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient
): Effect.fn.Return<ReadonlyMap<string, ReadonlyArray<string>>, SqlError.SqlError> {
  const references = yield* sql<{ table: string; referenced: string }>`
    SELECT a.relname AS table, b.relname AS referenced
    FROM pg_constraint f JOIN pg_class a ON a.oid = f.conrelid JOIN pg_class b ON b.oid = f.confrelid
    WHERE f.contype = 'f' AND f.conrelid <> f.confrelid`
  return new Map(
    Array.from(
      Map.groupBy(references, ({ table }) => table),
      ([name, found]) => [name, found.map(({ referenced }) => referenced)] as const
    )
  )
})

/** A table follows all tables that it refers to. */
const inOrder = (
  tables: ReadonlyArray<Table>,
  references: ReadonlyMap<string, ReadonlyArray<string>>
): ReadonlyArray<Table> => {
  const ordered = new Set<Table>()
  const visit = (table: Table): void => {
    for (const name of references.get(table.name) ?? []) {
      const referenced = tables.find((one) => one.name === name)
      if (referenced !== undefined && !ordered.has(referenced)) visit(referenced)
    }
    ordered.add(table)
  }
  for (const table of tables) visit(table)
  return Array.from(ordered)
}

const copySequences = Effect.fnUntraced(function* (source: SqlClient.SqlClient, target: SqlClient.SqlClient) {
  const sequences = yield* source<{ name: string }>`
    SELECT sequencename AS name FROM pg_sequences WHERE schemaname = 'public' ORDER BY sequencename`
  for (const { name } of sequences) {
    const [state] = yield* source.unsafe<{ last: string; called: boolean }>(
      `SELECT last_value::text AS last, is_called AS called FROM ${quote(name)}`
    )
    if (state !== undefined) yield* target`SELECT setval(${quote(name)}, ${state.last}::bigint, ${state.called})`
  }
})
