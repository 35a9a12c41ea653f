import { createHash } from "node:crypto"
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { PGlite } from "@electric-sql/pglite"
import { Effect, Layer } from "effect"
import * as DatabaseEmbedded from "../layers/DatabaseEmbedded.ts"
import * as DataDirectory from "../layers/data/DataDirectory.ts"
import * as Migrations from "../layers/postgres/Migrations.ts"

const root = fileURLToPath(new URL("..", import.meta.url))
const folder = join(root, "node_modules", ".cache", "embedded")

/**
 * Returns the path of a snapshot of an embedded database with the product's schema. Whoever asks first makes it, and it
 * stays until a migration or PGlite changes.
 */
export const path = async (): Promise<string> => {
  const path = join(folder, `${fingerprint()}.tar`)
  if (existsSync(path)) return path
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const data = mkdtempSync(join(tmpdir(), "svc-test-snapshot-"))
  try {
    const database = DatabaseEmbedded.layerOnDisk.pipe(Layer.provide(DataDirectory.layer(data)))
    await Migrations.run.pipe(Effect.provide(database), Effect.runPromise)
    const postgres = await PGlite.create({ dataDir: join(data, "database") })
    const dump = await postgres.dumpDataDir("none")
    await postgres.close()
    // Another run may make the same snapshot at the same time.
    const own = `${path}.${process.pid}`
    writeFileSync(own, Buffer.from(await dump.arrayBuffer()))
    renameSync(own, path)
  } finally {
    rmSync(data, { recursive: true, force: true })
  }
  return path
}

const fingerprint = (): string => {
  const hash = createHash("sha256")
  const migrations = join(root, "migrations")
  hash.update(readFileSync(join(root, "node_modules/@electric-sql/pglite/package.json")))
  for (const name of readdirSync(migrations).sort()) hash.update(name).update(readFileSync(join(migrations, name)))
  return hash.digest("hex")
}
