import { Context, Data, Effect, Predicate, Result, Schema, SchemaTransformation } from "effect"
import { type SqlClient, SqlError } from "effect/sql"
import * as SqlState from "../../services/SqlState.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import type { Unreadable } from "../api/schema/Fields.ts"

/** The refusals that every read and write of the control state may return. */
export type StoreFailure = Refused<"store_unavailable" | "invalid_request">

/** A stored row that this version cannot decode, because a newer version or a person wrote it. */
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
 * Keeps the failures that a caller can act on: the database is unavailable, a row cannot be decoded, or a text cannot
 * be stored (a NUL, half a surrogate pair). Every other SQL error, and a computed row that does not match its schema,
 * is a defect.
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

/** Every change writes its audit event in the same transaction. */
const unconfirmed = new ControlError(
  "store_unavailable",
  "The database did not confirm the change, so it may or may not have been made. Before you retry, look for this request_id in GET /admin-ui/admin/audit-events: an event with it means that the change was made."
)

/** All `bigint` columns of this schema stay below 2^53. */
export const Count = Schema.BigInt.pipe(
  Schema.decodeTo(Schema.Int, SchemaTransformation.transform({ decode: Number, encode: BigInt }))
)

/** Reads computed rows, such as counts and sums. A row that does not match the schema is a defect. */
export const computedRows = <T, E>(row: Schema.Codec<T, E>) => {
  const decode = Schema.decodeUnknownEffect(Schema.Array(row))
  return rowReaders<T, Schema.SchemaError>((statement) => Effect.flatMap(statement, decode))
}

/** A table, and the selected columns that identify a row in messages. */
export interface TableReference {
  readonly table: string
  readonly key: ReadonlyArray<string>
}

/**
 * Collects the names of the rows that a list skips because this version cannot decode them. If it is `undefined` (for a
 * configuration document or a plan), the list fails on the first such row, because a decision needs the whole table.
 */
export const SkippedRows = Context.Reference<Array<string> | undefined>("svc/control/SkippedRows", {
  defaultValue: () => undefined
})

/** Decodes rows one by one, so an unreadable row does not affect the others. */
export const storedRows = <T, E>(row: Schema.Codec<T, E>, { key, table }: TableReference) => {
  const decode = Schema.decodeUnknownResult(row)
  const read = (columns: unknown): Result.Result<T, UnreadableRow> =>
    Result.mapError(
      decode(columns),
      ({ message }) => new UnreadableRow({ table, row: nameOf(key, columns), why: message.slice(0, 500) })
    )
  const decodeAll = <Err, R>(statement: Effect.Effect<ReadonlyArray<unknown>, Err, R>) =>
    Effect.flatMap(statement, (rows) => Effect.forEach(rows, (columns) => Effect.fromResult(read(columns))))

  /** Decodes a list. Skips unreadable rows if `SkippedRows` collects their names. */
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
  /** Returns the only row of a statement that always returns one. A missing row is a defect. */
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
    // half of a surrogate pair can neither be stored nor written into a header
    .toWellFormed()

/** Longer than any name that the API accepts. */
const maxRowNameLength = 512

/**
 * Locks a project against deletion. Take this lock before locking rows that refer to the project, in the order of
 * project changes and configuration documents; another order would deadlock.
 */
export const lockProject = (sql: SqlClient.SqlClient, id: string | null | undefined) =>
  id ? Effect.asVoid(sql`SELECT 1 FROM projects WHERE id = ${id} FOR KEY SHARE`) : Effect.void

/** Turns a violation of a unique constraint into a refusal. */
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
