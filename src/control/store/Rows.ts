import { Context, Data, Effect, Predicate, Result, Schema, SchemaTransformation } from "effect"
import { type SqlClient, SqlError } from "effect/sql"
import * as SqlState from "../../services/SqlState.ts"
import { ControlError, type Refused } from "../api/schema/Errors.ts"
import type { Unreadable } from "../api/schema/Fields.ts"

/** What every read and write of the control state may refuse with. */
export type StoreFailure = Refused<"store_unavailable" | "invalid_request">

/** A stored row that this version cannot decode: a newer version wrote it, or somebody changed it by hand. */
export class UnreadableRow extends Data.TaggedError("UnreadableRow")<{
  readonly table: string
  /** The values of its key columns. */
  readonly row: string
  /** Why, without the row's content. */
  readonly why: string
}> {
  override get message() {
    return `The row${this.row && ` ${this.row}`} of the table ${this.table} cannot be read by this version of the gateway (${this.why.replaceAll(/\s+/g, " ")}); a newer version may have written it.`
  }
}

/**
 * Leaves what the caller can act on: a database that cannot answer now, a stored row that this version cannot decode,
 * and text that the database cannot hold (a NUL, half a surrogate pair). Any other failure of a statement, and a
 * computed answer that is not what its schema says, is a defect.
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
    ? Effect.logWarning("The database could not answer", error.message).pipe(
        Effect.andThen(Effect.fail(SqlState.isCommitUnconfirmed(error) ? unconfirmed : unavailable))
      )
    : SqlState.isUnstorable(error)
      ? Effect.fail(new ControlError("invalid_request", "A text holds a character that cannot be stored."))
      : Effect.die(error)

const unavailable = new ControlError("store_unavailable", "The database cannot answer now; try again later.")

/** Every change has its audit event in the same transaction. */
const unconfirmed = new ControlError(
  "store_unavailable",
  "The database did not confirm what was asked: a change may have been made. It was if GET /admin-ui/admin/audit-events has an event with this request_id; look there before you ask for it again."
)

/** `bigint` columns of this schema stay below 2^53. */
export const Count = Schema.BigInt.pipe(
  Schema.decodeTo(Schema.Int, SchemaTransformation.transform({ decode: Number, encode: BigInt }))
)

/** Computed answers, such as counts and sums, read by the schema of one row. */
export const computedRows = <T, E>(row: Schema.Codec<T, E>) => {
  const decode = Schema.decodeUnknownEffect(Schema.Array(row))
  return rowReaders<T, Schema.SchemaError>((statement) => Effect.flatMap(statement, decode))
}

/** The table that rows come from, and the selected columns that name one of them in messages. */
export interface TableReference {
  readonly table: string
  readonly key: ReadonlyArray<string>
}

/**
 * Takes the names of the rows that a list leaves out because this version cannot decode them. Without one (a
 * configuration document, a plan), a list fails with the first of them: nothing is decided on a part of a table.
 */
export const SkippedRows = Context.Reference<Array<string> | undefined>("svc/control/SkippedRows", {
  defaultValue: () => undefined
})

/**
 * Stored rows, read by the schema of one row. Each of them is decoded by itself, so that a row of another version costs
 * nothing but itself. `first` and `only` fail with an `UnreadableRow`.
 */
export const storedRows = <T, E>(row: Schema.Codec<T, E>, { key, table }: TableReference) => {
  const decode = Schema.decodeUnknownResult(row)
  const read = (columns: unknown): Result.Result<T, UnreadableRow> =>
    Result.mapError(
      decode(columns),
      ({ message }) => new UnreadableRow({ table, row: nameOf(key, columns), why: message.slice(0, 500) })
    )
  const decodeAll = <Err, R>(statement: Effect.Effect<ReadonlyArray<unknown>, Err, R>) =>
    Effect.flatMap(statement, (found) => Effect.forEach(found, (columns) => Effect.fromResult(read(columns))))

  /** For a list: leaves out what cannot be decoded, where whoever asks takes the names (`SuppressedLines`). */
  const all = Effect.fnUntraced(function* <Err, R>(statement: Effect.Effect<ReadonlyArray<unknown>, Err, R>) {
    const skipped = yield* SkippedRows
    if (skipped === undefined) return yield* decodeAll(statement)
    const readable: Array<T> = []
    for (const columns of yield* statement) {
      const found = read(columns)
      if (Result.isSuccess(found)) readable.push(found.success)
      else {
        skipped.push(found.failure.row)
        yield* Effect.logWarning(`A list leaves a row out. ${found.failure.message}`)
      }
    }
    return readable
  })

  return {
    ...rowReaders<T, UnreadableRow>(decodeAll),
    all,
    /** The first row also where it cannot be decoded, for what needs no more of it than its key. */
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
  /** The first row, or `undefined`. */
  first: <Err, R>(statement: Effect.Effect<ReadonlyArray<unknown>, Err, R>) =>
    Effect.map(all(statement), (found) => found[0]),
  /** The row of a statement that cannot but answer with one. */
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
    // half of a surrogate pair can neither be stored nor be written into a header
    .toWellFormed()

/** Longer than any name that the API takes. */
const maxRowNameLength = 512

/**
 * Keeps a project in place. It comes before the lock of what refers to it: a change of a project, and a whole document,
 * hold projects first, and two that wait for each other would both be lost.
 */
export const lockProject = (sql: SqlClient.SqlClient, id: string | null | undefined) =>
  id ? Effect.asVoid(sql`SELECT 1 FROM projects WHERE id = ${id} FOR KEY SHARE`) : Effect.void

/** Turns the violation of a unique constraint into the refusal that it means. */
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

/** The columns that the API shows as RFC 3339. */
export const rowTimestamps = { created_at: Schema.DateTimeUtcFromDate, updated_at: Schema.DateTimeUtcFromDate }

/** Values by the name of their column. */
export type ColumnValues = Readonly<Record<string, string | number | boolean | Date | ReadonlyArray<string> | null>>
