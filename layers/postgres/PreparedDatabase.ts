import { existsSync, mkdirSync, openAsBlob, readFileSync, writeFileSync } from "node:fs"
import { findPackageJSON } from "node:module"
import { dirname, join } from "node:path"
import { PGlite } from "@electric-sql/pglite"

/**
 * An empty database, packed by the build. PGlite needs several seconds of processor time to create one, and a fifth of
 * that to unpack one. Without the file, as in a bundle, databases are created as usual.
 */
const pathOf = (): string | undefined => {
  const own = findPackageJSON(import.meta.url)
  const pglite = findPackageJSON("@electric-sql/pglite", import.meta.url)
  if (own === undefined || pglite === undefined) return undefined
  const manifest: unknown = JSON.parse(readFileSync(pglite, "utf8"))
  if (typeof manifest !== "object" || manifest === null || !("version" in manifest)) return undefined
  // another version of PGlite may have another format
  return join(dirname(own), "dist", `pglite-${manifest.version}.tar.gz`)
}

/** Returns what `PGlite.create` takes to begin with the prepared database, or nothing if there is none. */
export const options = async (): Promise<{ readonly loadDataDir?: Blob }> => {
  const path = pathOf()
  return path !== undefined && existsSync(path)
    ? { loadDataDir: await openAsBlob(path, { type: "application/gzip" }) }
    : {}
}

/** Packs an empty database for `options`. Returns its path. */
export const write = async (): Promise<string> => {
  const path = pathOf()
  if (path === undefined) throw new Error("The package of PGlite has no readable package.json.")
  const database = await PGlite.create()
  try {
    const packed = await database.dumpDataDir("gzip")
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, Buffer.from(await packed.arrayBuffer()))
    return path
  } finally {
    await database.close()
  }
}
