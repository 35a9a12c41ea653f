import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import { Database } from "../../src/services/Database.ts"
import * as TemporaryDatabase from "../TemporaryDatabase.ts"
import { admin, at, call, layer as listener, refusalOf } from "./Listener.ts"

const create = (name: string) => call("POST", `${admin}/projects`, { body: { name } })

describe.skipIf(TemporaryDatabase.server === null)("a change on a server", () => {
  layer(listener(TemporaryDatabase.layer), { excludeTestServices: true })((it) => {
    it.effect("whose COMMIT is not confirmed is answered with where to look for it", () =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        yield* sql`CREATE FUNCTION ended() RETURNS trigger LANGUAGE plpgsql AS
          $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(60); RETURN NULL; END $$`
        yield* sql`CREATE CONSTRAINT TRIGGER late AFTER INSERT ON projects DEFERRABLE INITIALLY DEFERRED
          FOR EACH ROW EXECUTE FUNCTION ended()`
        const unconfirmed = yield* create("late")
        assert.deepStrictEqual(refusalOf(unconfirmed), { status: 503, code: "store_unavailable", param: null })
        assert.match(
          String(at(unconfirmed.json, "error", "message")),
          /may or may not have been made.*request_id.*audit-events/
        )
        // of a statement that failed before, everybody knows that it changed nothing
        yield* sql`DROP TRIGGER late ON projects`
        yield* sql`CREATE TRIGGER early AFTER INSERT ON projects FOR EACH ROW EXECUTE FUNCTION ended()`
        const failed = yield* create("early")
        assert.deepStrictEqual(refusalOf(failed), { status: 503, code: "store_unavailable", param: null })
        assert.notInclude(failed.text, "may or may not have been made")
      })
    )
  })
})
