import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Schema } from "effect"
import { SqlError } from "effect/sql"
import { ControlError, statusOf } from "../../../src/control/api/schema/Errors.ts"
import { onDuplicate, toStoreFailures } from "../../../src/control/store/Rows.ts"

const failure = (reason: SqlError.SqlErrorReason) => Effect.fail(new SqlError.SqlError({ reason }))
const cause = (code: string) => Object.assign(new Error("secret detail"), { code })

describe("Store", () => {
  it.effect("a database that cannot answer now is said to be away, without its words", () =>
    Effect.gen(function* () {
      for (const reason of [
        new SqlError.ConnectionError({ cause: cause("ECONNREFUSED") }),
        new SqlError.DeadlockError({ cause: cause("40P01") }),
        new SqlError.StatementTimeoutError({ cause: cause("57014") }),
        ...["25006", "53100", "53300", "57P01", "57P03", "58030"].map(
          (code) => new SqlError.UnknownError({ cause: cause(code) })
        )
      ]) {
        const refusal = yield* Effect.flip(toStoreFailures(failure(reason)))
        assert.strictEqual(refusal.code, "store_unavailable")
        assert.strictEqual(statusOf[refusal.code], 503)
        assert.notInclude(refusal.message, "secret detail")
      }
    })
  )

  it.effect("a value that cannot be stored is the caller's; any other failure is a defect", () =>
    Effect.gen(function* () {
      const unstorable = toStoreFailures(failure(new SqlError.UnknownError({ cause: cause("22P05") })))
      assert.strictEqual((yield* Effect.flip(unstorable)).code, "invalid_request")
      const broken = yield* Effect.exit(
        toStoreFailures(failure(new SqlError.SqlSyntaxError({ cause: cause("42601") })))
      )
      assert.isTrue(Exit.isFailure(broken) && Cause.hasDies(broken.cause) && !Cause.hasFails(broken.cause))
      const row = yield* Effect.exit(toStoreFailures(Schema.decodeUnknownEffect(Schema.String)(1)))
      assert.isTrue(Exit.isFailure(row) && Cause.hasDies(row.cause))
    })
  )

  it.effect("refusals pass, and a violated constraint becomes the one that it means", () =>
    Effect.gen(function* () {
      const own = new ControlError("project_in_use", "in use")
      assert.strictEqual(yield* Effect.flip(toStoreFailures(Effect.fail(own))), own)
      const violation = failure(
        new SqlError.UniqueViolation({ cause: cause("23505"), constraint: "projects_name_key" })
      )
      const refused = onDuplicate(violation, (constraint) => new ControlError("duplicate_project", constraint))
      assert.strictEqual((yield* Effect.flip(toStoreFailures(refused))).message, "projects_name_key")
    })
  )
})
