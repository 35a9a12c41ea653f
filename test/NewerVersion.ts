import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"

const root = fileURLToPath(new URL("..", import.meta.url))

/** A value of the key policy's field `unpriced_models` that only the newer version knows. */
export const newerValue = "newer"

const migration = `import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql.unsafe("ALTER TABLE api_keys ADD COLUMN of_newer_version integer NOT NULL DEFAULT 7")
})
`

/**
 * The folder of a version of the program that knows one value more and has one migration more. The folder is removed
 * with the scope.
 */
export const make = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = mkdtempSync(join(tmpdir(), "svc-newer-"))
    for (const part of ["src", "layers", "migrations", "package.json"])
      cpSync(join(root, part), join(folder, part), { recursive: true })
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"))
    const policy = join(folder, "src/policy/KeyPolicy.ts")
    const text = readFileSync(policy, "utf8")
    const newer = text.replace(/(const UnpricedModels = Schema\.Literals\(\[)/, `$1"${newerValue}", `)
    if (newer === text) throw new Error("KeyPolicy.ts has no UnpricedModels to add a value to")
    writeFileSync(policy, newer)
    writeFileSync(join(folder, "migrations/9001_newer.ts"), migration)
    return folder
  }),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)
