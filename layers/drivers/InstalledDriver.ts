import { readFileSync } from "node:fs"
import { findPackageJSON } from "node:module"
import { Context, Effect } from "effect"

/** The versions of the drivers whose private parts `amqp/Internals.ts` and `ioredis/Internals.ts` can use. */
const knownVersions = { amqplib: ["2.3.1"], ioredis: ["6.0.0"] } satisfies Record<string, ReadonlyArray<string>>

type Driver = keyof typeof knownVersions

/** Returns `undefined` if the driver has no readable package.json, for example in a bundle. */
const readVersion = (driver: Driver): string | undefined => {
  try {
    const manifest: unknown = JSON.parse(readFileSync(findPackageJSON(driver, import.meta.url) ?? "", "utf8"))
    return typeof manifest === "object" && manifest !== null && "version" in manifest
      ? String(manifest.version)
      : undefined
  } catch {
    return undefined
  }
}

/** Returns the installed version of a driver. Tests replace it. */
export const InstalledVersion = Context.Reference<typeof readVersion>("svc/layers/InstalledVersion", {
  defaultValue: () => readVersion
})

/** Returns `internals` for known versions of the driver. Otherwise logs a warning and returns `publicApi`. */
export const select = Effect.fnUntraced(function* <A>(
  driver: Driver,
  { internals, publicApi, slower }: { readonly internals: A; readonly publicApi: A; readonly slower: string }
) {
  const version = (yield* InstalledVersion)(driver)
  const known: ReadonlyArray<string> = knownVersions[driver]
  if (version !== undefined && known.includes(version)) return internals
  yield* Effect.logWarning(
    `${driver} ${version ?? "of unknown version"} is installed, but only other versions are fully supported, so its slower public API is used: ${slower}`,
    `install ${driver} ${known.join(" or ")}`
  )
  return publicApi
})
