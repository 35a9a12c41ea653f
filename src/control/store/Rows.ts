import { Context, Data, Effect, Predicate, Result, Schema, SchemaTransformation } from "effect"
import { type SqlClient, SqlError } from "effect/sql"
import * as SqlState from "../../services/SqlState.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import type { Unreadable } from "../api/schema/Fields.ts"

export type StoreFailure = Refused<"store_unavailable" | "invalid_request">

/** A row that this version cannot decode, because a newer version or a person wrote it. */
export class UnreadableRow extends Data.TaggedError("UnreadableRow")<{
  readonly table: string
  readonly row: string
  readonly why: string
}> {
  override get message() {
    return `The row${this.row && ` ${this.row}`} of the table ${this.table} cannot be decoded by this version of the gateway (${this.why.replaceAll(/\s+/g, " ")}). A newer version may have written it.`
  }
}

/**
 * Keeps failures that the caller can act on: the database is unavailable, a row cannot be decoded, or a text cannot be
 * stored. Every other SQL error is a bug and becomes a defect.
 */
export const toStoreFailures = <A, E, R>(
  work: Effect.Effect<A, E, R>
): Effect.Effect<A, Exclude<E, StatementFailure> | StoreFailure, R> =>
  Effect.catch(work, (error): Effect.Effect<never, Exclude<E, StatementFailure> | StoreFailure> => {
    if (isRefusal(error)) return Effect.fail(error)
    if (error instanceof UnreadableRow) {
      const { message } = error
      return Effect.andThen(Effect.logWarning(message), Effect.fail(new ControlError("store_unavailable", message)))
    }
    return SqlError.isSqlError(error) ? toStoreFailure(error) : Effect.die(error)
  })

export type StatementFailure = SqlError.SqlError | Schema.SchemaError | UnreadableRow

const isRefusal = <E>(error: E): error is Exclude<E, StatementFailure> =>
  !SqlError.isSqlError(error) && !Schema.isSchemaError(error) && !(error instanceof UnreadableRow)

const toStoreFailure = (error: SqlError.SqlError): Effect.Effect<never, StoreFailure> =>
  SqlState.isTransient(error)
    ? Effect.logWarning("The database is unavailable; a request is refused with status 503", error.message).pipe(
        Effect.andThen(Effect.fail(SqlState.isCommitUnconfirmed(error) ? unconfirmed : unavailable))
      )
    : SqlState.isUnstorable(error)
      ? Effect.fail(
          new ControlError(
            "invalid_request",
            "A text contains a character that the database cannot store, such as NUL or half of a surrogate pair. Remove it."
          )
        )
      : Effect.die(error)

const unavailable = new ControlError("store_unavailable", "The database is unavailable. Try again later.")

/** A change and its audit event commit together, so the audit log shows whether the commit succeeded. */
const unconfirmed = new ControlError(
  "store_unavailable",
  "The database did not confirm the change, so it may or may not have been made. Before you retry, look for this request_id in GET /admin-ui/admin/audit-events. An event with this request_id means that the change was made."
)

/** Columns of type `bigint` contain numbers below 2^53, so a JavaScript number is exact. */
export const Count = Schema.BigInt.pipe(
  Schema.decodeTo(Schema.Int, SchemaTransformation.transform({ decode: Number, encode: BigInt }))
)

/** Reads counts, sums and other computed rows. A mismatch with the schema is a bug. */
export const computedRows = <T, E>(row: Schema.Codec<T, E>) => {
  const decode = Schema.decodeUnknownEffect(Schema.Array(row))
  return rowReaders<T, Schema.SchemaError>((statement) => Effect.flatMap(statement, decode))
}

/** `key` names the columns that identify a row in error messages. */
interface TableReference {
  readonly table: string
  readonly key: ReadonlyArray<string>
}

/**
 * If a list cannot decode a row, it adds the row's name to this array and continues. Without the array the list fails,
 * because configuration documents and plans need the whole table.
 */
export const SkippedRows = Context.Reference<Array<string> | undefined>("svc/control/SkippedRows", {
  defaultValue: () => undefined
})

/** Decodes each row separately, because another version may have written some of the rows. */
export const storedRows = <T, E>(row: Schema.Codec<T, E>, { key, table }: TableReference) => {
  const decode = Schema.decodeUnknownResult(row)
  const read = (columns: unknown): Result.Result<T, UnreadableRow> =>
    Result.mapError(
      decode(columns),
      ({ message }) => new UnreadableRow({ table, row: nameOf(key, columns), why: message.slice(0, 500) })
    )
  const decodeAll = <Err, R>(statement: Effect.Effect<ReadonlyArray<unknown>, Err, R>) =>
    Effect.flatMap(statement, (rows) => Effect.forEach(rows, (columns) => Effect.fromResult(read(columns))))

  const all = Effect.fnUntraced(function* <Err, R>(statement: Effect.Effect<ReadonlyArray<unknown>, Err, R>) {
    const skipped = yield* SkippedRows
    if (skipped === undefined) return yield* decodeAll(statement)
    const readable: Array<T> = []
    for (const columns of yield* statement) {
      const decoded = read(columns)
      if (Result.isSuccess(decoded)) readable.push(decoded.success)
      else {
        skipped.push(decoded.failure.row)
        yield* Effect.logWarning(`A list leaves out a row. ${decoded.failure.message}`)
      }
    }
    return readable
  })

  return {
    ...rowReaders<T, UnreadableRow>(decodeAll),
    all,
    /** Returns the first row even if it cannot be decoded, for operations that need only its key. */
    firstOrUnreadable: <Err, R>(statement: Effect.Effect<ReadonlyArray<unknown>, Err, R>) =>
      Effect.map(statement, ([columns]): T | Unreadable | undefined =>
        columns === undefined
          ? undefined
          : Result.getOrElse(read(columns), ({ row }) => ({ id: row, unreadable: true as const }))
      )
  }
}

const rowReaders = <T, Failure>(
  all: <Err, R>(
    statement: Effect.Effect<ReadonlyArray<unknown>, Err, R>
  ) => Effect.Effect<ReadonlyArray<T>, Err | Failure, R>
) => ({
  all,
  first: <Err, R>(statement: Effect.Effect<ReadonlyArray<unknown>, Err, R>) =>
    Effect.map(all(statement), (rows) => rows[0]),
  /** Returns the only row of a statement that always returns one row. */
  only: <Err, R>(statement: Effect.Effect<ReadonlyArray<unknown>, Err, R>) =>
    Effect.flatMap(all(statement), ([row]) => (row === undefined ? Effect.die(new NoRow()) : Effect.succeed(row)))
})

const nameOf = (key: ReadonlyArray<string>, columns: unknown): string =>
  key
    .map((column) => (Predicate.hasProperty(columns, column) ? columns[column] : undefined))
    .filter(Predicate.isNotNullish)
    .map(String)
    .join("/")
    .slice(0, maxRowNameLength)
    // Half of a surrogate pair can neither be stored nor written into a header.
    .toWellFormed()

const maxRowNameLength = 512

/**
 * Locks a project against deletion. Take this lock before locks on rows that refer to the project. All transactions use
 * this order, because another order can deadlock.
 */
export const lockProject = (sql: SqlClient.SqlClient, id: string | null | undefined) =>
  id ? Effect.asVoid(sql`SELECT 1 FROM projects WHERE id = ${id} FOR KEY SHARE`) : Effect.void

export const onDuplicate = <A, E, R, Refusal>(
  statement: Effect.Effect<A, E, R>,
  refusal: (constraint: string) => Refusal
): Effect.Effect<A, E | Refusal, R> =>
  Effect.catch(
    statement,
    (error): Effect.Effect<never, E | Refusal> =>
      SqlError.isSqlError(error) && error.reason._tag === "UniqueViolation"
        ? Effect.fail(refusal(error.reason.constraint))
        : Effect.fail(error)
  )

class NoRow extends Data.TaggedError("NoRow") {}

export const rowTimestamps = { created_at: Schema.DateTimeUtcFromDate, updated_at: Schema.DateTimeUtcFromDate }

export type ColumnValues = Readonly<Record<string, string | number | boolean | Date | ReadonlyArray<string> | null>>
