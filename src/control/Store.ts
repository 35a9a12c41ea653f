import { Data, Effect, Schema, SchemaTransformation } from "effect"
import { type SqlClient, SqlError } from "effect/sql"
import * as SqlState from "../services/SqlState.ts"
import { ControlError, type Refused } from "./api/Errors.ts"

/** What every read and write of the control state may refuse with. */
export type StoreFailure = Refused<"store_unavailable" | "invalid_request">

/**
 * Leaves what the caller can act on: a database that cannot answer now, and text that it cannot hold (a NUL, half a
 * surrogate pair). Any other failure of a statement, and a row that is not what its schema says, is a defect.
 */
export const settled = <A, E, R>(
  work: Effect.Effect<A, E, R>
): Effect.Effect<A, Exclude<E, StatementFailure> | StoreFailure, R> =>
  Effect.catch(work, (error): Effect.Effect<never, Exclude<E, StatementFailure> | StoreFailure> => {
    if (isRefusal(error)) return Effect.fail(error)
    return SqlError.isSqlError(error) ? refused(error) : Effect.die(error)
  })

export type StatementFailure = SqlError.SqlError | Schema.SchemaError

const isRefusal = <E>(error: E): error is Exclude<E, StatementFailure> =>
  !SqlError.isSqlError(error) && !Schema.isSchemaError(error)

const refused = (error: SqlError.SqlError): Effect.Effect<never, StoreFailure> =>
  SqlState.mayPass(error)
    ? Effect.logWarning("The database could not answer", error.message).pipe(
        Effect.andThen(
          Effect.fail(new ControlError("store_unavailable", "The database cannot answer now; try again later."))
        )
      )
    : SqlState.isUnstorable(error)
      ? Effect.fail(new ControlError("invalid_request", "A text holds a character that cannot be stored."))
      : Effect.die(error)

/** `bigint` columns of this schema stay below 2^53. */
export const Count = Schema.BigInt.pipe(
  Schema.decodeTo(Schema.Int, SchemaTransformation.transform({ decode: Number, encode: BigInt }))
)

/** Answers of statements, read by the schema of one row. */
export const rows = <T, E>(row: Schema.Codec<T, E>) => {
  const decode = Schema.decodeUnknownEffect(Schema.Array(row))
  const all = <Err, R>(statement: Effect.Effect<ReadonlyArray<unknown>, Err, R>) => Effect.flatMap(statement, decode)
  return {
    all,
    /** The first row, or `undefined`. */
    first: <Err, R>(statement: Effect.Effect<ReadonlyArray<unknown>, Err, R>) =>
      Effect.map(all(statement), (found) => found[0]),
    /** The row of a statement that cannot but answer with one. */
    only: <Err, R>(statement: Effect.Effect<ReadonlyArray<unknown>, Err, R>) =>
      Effect.flatMap(all(statement), ([row]) => (row === undefined ? Effect.die(new NoRow()) : Effect.succeed(row)))
  }
}

/**
 * Keeps a project in place. It comes before the lock of what refers to it: a change of a project, and a whole document,
 * hold projects first, and two that wait for each other would both be lost.
 */
export const heldProject = (sql: SqlClient.SqlClient, id: string | null | undefined) =>
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
export const rowStamps = { created_at: Schema.DateTimeUtcFromDate, updated_at: Schema.DateTimeUtcFromDate }

/** Values by the name of their column. */
export type Columns = Readonly<Record<string, string | number | boolean | Date | ReadonlyArray<string> | null>>
