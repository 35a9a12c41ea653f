import { accessSync, constants, mkdirSync } from "node:fs"
import { join, resolve } from "node:path"
import { Context, Effect, Layer } from "effect"
import { type DataInUse, type DataRefused, type DataUnusable, unusable } from "./DataRefused.ts"
import * as DirectoryVersion from "./DirectoryVersion.ts"

export type DataFailure = DataRefused | DataInUse | DataUnusable

/** A directory in which the variants inside the process keep their data. Only one process can hold it. */
export class DataDirectory extends Context.Service<
  DataDirectory,
  {
    readonly path: string
    /** The path of a folder, which exists. */
    readonly folder: (name: "redis" | "broker") => string
  }
>()("svc/layers/DataDirectory") {}

/** Creates the directory if it does not exist, and locks it until the layer closes. */
export const layer = (directory: string): Layer.Layer<DataDirectory, DataFailure> =>
  Layer.effect(
    DataDirectory,
    Effect.gen(function* () {
      const path = resolve(directory)
      yield* Effect.try({ try: () => createPrivate(path), catch: (cause) => unusable(path, cause) })
      // Node 22 warns when SQLite is loaded, so it is loaded only where a directory is locked.
      const DirectoryLock = yield* Effect.promise(() => import("./DirectoryLock.ts"))
      yield* DirectoryLock.acquire(path)
      yield* DirectoryVersion.check(path)
      return DataDirectory.of({
        path,
        folder: (name) => createPrivate(join(path, name))
      })
    })
  )

/** The data contains credentials, so other users of the machine must not read it. */
const createPrivate = (path: string): string => {
  mkdirSync(path, { recursive: true, mode: 0o700 })
  accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK)
  return path
}
