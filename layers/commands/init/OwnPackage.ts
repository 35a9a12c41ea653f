import { dirname, join, relative, sep } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect, FileSystem, Record, Schema } from "effect"

const Versions = Schema.Record(Schema.String, Schema.String)

const Manifest = Schema.Struct({
  version: Schema.String,
  engines: Versions,
  peerDependencies: Versions,
  devDependencies: Versions
})
const readManifest = Schema.decodeEffect(Schema.fromJsonString(Manifest))

/** The list that npm keeps of what it has installed. */
const InstalledPackages = Schema.Struct({
  packages: Schema.Record(Schema.String, Schema.Struct({ resolved: Schema.optional(Schema.String) }))
})
const readInstalledPackages = Schema.decodeEffect(Schema.fromJsonString(InstalledPackages))

export interface OwnPackage {
  readonly folder: string
  /** The versions of Node and of other packages that this package needs, or with which it was tested. */
  readonly versions: Readonly<Record<string, string>>
  readonly version: string
  /** The file from which npm has installed this package. `undefined` if it was a registry, or if it is a checkout. */
  readonly tarball: string | undefined
}

const manifestPath = Effect.sync(() => fileURLToPath(import.meta.resolve("svc-runtime/package.json")))

/** Reads the package that this program is a part of. */
export const read = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const path = yield* manifestPath
  const folder = dirname(path)
  const { devDependencies, engines, peerDependencies, version } = yield* Effect.orDie(
    Effect.flatMap(files.readFileString(path), readManifest)
  )
  const own: OwnPackage = {
    folder,
    version,
    versions: { ...devDependencies, ...peerDependencies, ...engines },
    tarball: yield* findTarball(folder)
  }
  return own
})

const findTarball = Effect.fnUntraced(function* (folder: string) {
  const files = yield* FileSystem.FileSystem
  const list = join(dirname(folder), ".package-lock.json")
  const installed = yield* Effect.option(Effect.flatMap(files.readFileString(list), readInstalledPackages))
  if (installed._tag === "None") return undefined
  const resolved = Record.get(installed.value.packages, "node_modules/svc-runtime")
  const source = resolved._tag === "Some" ? resolved.value.resolved : undefined
  if (source === undefined || !source.startsWith("file:")) return undefined
  const tarball = join(dirname(dirname(folder)), source.slice("file:".length))
  return (yield* Effect.orElseSucceed(files.exists(tarball), () => false)) ? tarball : undefined
})

/** The dependency that gives a project in this folder the same package. */
export const dependencyOf = ({ tarball, version }: OwnPackage, project: string): string =>
  tarball === undefined ? version : `file:${relative(project, tarball).split(sep).join("/")}`
