import { assert, describe, it } from "@effect/vitest"
import { PGlite, type PGliteOptions } from "@electric-sql/pglite"
import * as PreparedDatabase from "../../../layers/postgres/PreparedDatabase.ts"

/** What an installation could depend on. */
const facts = async (options: PGliteOptions) => {
  const database = await PGlite.create(options)
  try {
    const rows = async (statement: string) => (await database.query(statement)).rows
    return {
      settings: await rows("SELECT name, setting FROM pg_settings ORDER BY name"),
      databases: await rows(
        "SELECT datname, encoding, datcollate, datctype, datlocprovider FROM pg_database ORDER BY 1"
      ),
      roles: await rows("SELECT rolname, rolsuper, rolcanlogin FROM pg_roles ORDER BY 1"),
      relations: await rows("SELECT relname, relkind FROM pg_class WHERE relnamespace = 'public'::regnamespace")
    }
  } finally {
    await database.close()
  }
}

describe("the database that the build prepares", () => {
  it("is there, and is the one that PGlite creates", async () => {
    const prepared = await PreparedDatabase.options()
    assert.property(prepared, "loadDataDir", "npm run build:database prepares it, as npm ci does")
    assert.deepStrictEqual(await facts(prepared), await facts({}))
  })
})
