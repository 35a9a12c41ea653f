import { readdir, readFile, stat } from "node:fs/promises"
import { extname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect, Layer } from "effect"
import { type BuiltPortal, type PortalFile, PortalFiles } from "../../src/control/portal/PortalFiles.ts"
import { isPage } from "../../src/control/portal/PortalPage.ts"

/** `npm run build:portal` writes it: beside the compiled files of the package, or into `dist` of a checkout. */
const ownFolder = fileURLToPath(
  new URL(import.meta.url.endsWith(".ts") ? "../../dist/portal" : "../../portal", import.meta.url)
)

/** The portal takes this much memory at most, in all encodings together. It has 3 MB today. */
const maxBytes = 32 * 1024 * 1024

const contentTypes: Readonly<Record<string, string>> = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".woff2": "font/woff2"
}

/** Reads the built portal into memory. Without the folder, or with an unusable one, there is none. */
export const layer = (folder: string = ownFolder) =>
  Layer.effect(
    PortalFiles,
    Effect.tryPromise(() => read(folder)).pipe(
      Effect.tapError(({ cause }) =>
        isAbsent(cause) ? Effect.void : Effect.logWarning("The portal cannot be read, so it is not served", cause)
      ),
      Effect.option
    )
  )

const isAbsent = (cause: unknown): boolean => cause instanceof Error && "code" in cause && cause.code === "ENOENT"

const read = async (folder: string): Promise<BuiltPortal> => {
  const page = await readFile(join(folder, "index.html"), "utf8")
  if (!isPage(page)) throw new Error(`${folder} has the page of another version: run npm run build:portal`)
  return { page, assets: await readAssets(join(folder, "assets")) }
}

/** A file is stored beside its compressed forms, which have its name and `.br` or `.gz`. */
const readAssets = async (folder: string): Promise<ReadonlyMap<string, PortalFile>> => {
  const names = await readdir(folder)
  const sizes = await Promise.all(names.map((name) => stat(join(folder, name))))
  const total = sizes.reduce((sum, { size }) => sum + size, 0)
  if (total > maxBytes) throw new Error(`${folder} has ${total} bytes, and at most ${maxBytes} are kept in memory`)
  const bytes = new Map(
    await Promise.all(names.map(async (name) => [name, await readFile(join(folder, name))] as const))
  )
  const assets = new Map<string, PortalFile>()
  for (const [name, identity] of bytes) {
    const contentType = contentTypes[extname(name)]
    const gzip = bytes.get(`${name}.gz`)
    const br = bytes.get(`${name}.br`)
    if (contentType !== undefined) assets.set(name, { contentType, identity, ...(gzip && { gzip }), ...(br && { br }) })
  }
  return assets
}
