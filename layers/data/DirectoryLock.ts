import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { Effect, Predicate, type Scope } from "effect"
import { DataInUse, type DataUnusable, unusable } from "./DataRefused.ts"

/**
 * Locks the directory until the scope closes. Node has no file locks of its own, so this is the lock of an empty SQLite
 * file. The kernel releases it when the process ends, also after `kill -9`, and sees processes in other containers.
 */
export const acquire = (directory: string): Effect.Effect<void, DataInUse | DataUnusable, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.try({
      try: () => lock(directory),
      catch: (cause) =>
        isBusy(cause) ? new DataInUse({ message: describeHolder(directory) }) : unusable(directory, cause)
    }),
    (file) => Effect.sync(() => file.close())
  ).pipe(Effect.asVoid)

const lock = (directory: string): DatabaseSync => {
  const file = new DatabaseSync(join(directory, "lock"))
  try {
    file.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE")
    writeFileSync(join(directory, holderFile), `process ${process.pid} since ${new Date().toISOString()}\n`)
    return file
  } catch (cause) {
    file.close()
    throw cause
  }
}

/** The error `SQLITE_BUSY`, which is the lowest byte of its kinds. */
const isBusy = (cause: unknown): boolean =>
  Predicate.hasProperty(cause, "errcode") && Predicate.isNumber(cause.errcode) && (cause.errcode & 0xff) === 5

/** Names the holder of the lock in messages. The lock itself does not depend on this file. */
const holderFile = "lock.holder"

const describeHolder = (directory: string): string => {
  let holder = "another process"
  try {
    holder = readFileSync(join(directory, holderFile), "utf8").trim()
  } catch {}
  return `The data directory ${directory} is in use by another svc-runtime (${holder}). Stop that process first, or use another directory.`
}
