import { readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Option, Schema } from "effect"
import { version } from "../telemetry/Version.ts"
import { DataRefused, type DataUnusable, unusable } from "./DataRefused.ts"

/**
 * Increase this number when older versions of the program can no longer read the files of a directory, and add the step
 * from the previous format to `upgrades`.
 */
const currentFormat = 1

/** `upgrades[n]` turns a directory of format `n` into one of format `n + 1`. A step must be repeatable after a crash. */
type Upgrades = Readonly<Record<number, (directory: string) => void>>

const noUpgrades: Upgrades = {}

const VersionFile = Schema.fromJsonString(Schema.Struct({ format: Schema.Int, program: Schema.String }))

const fileName = "version.json"

/** Files that a process may create before it writes the version. */
const createdBefore = new Set(["lock", "lock-journal", "lock.holder", `${fileName}.new`])

/** Reads the version of a locked directory, upgrades an older one, and refuses a newer one. */
export const check = (
  directory: string,
  { format = currentFormat, upgrades = noUpgrades }: { readonly format?: number; readonly upgrades?: Upgrades } = {}
): Effect.Effect<void, DataRefused | DataUnusable> =>
  Effect.gen(function* () {
    const found = yield* read(directory)
    if (Option.isNone(found)) return yield* write(directory, format)
    const written = found.value
    if (written.format > format) {
      return yield* new DataRefused({
        message: `The data directory ${directory} was written by svc-runtime ${written.program}, which is newer than this version (${version}): its format is ${written.format}, and this version reads formats up to ${format}. Start svc-runtime ${written.program} or newer, or restore a copy of the directory from before the upgrade.`
      })
    }
    for (let step = written.format; step < format; step++) {
      upgrades[step]?.(directory)
      yield* write(directory, step + 1)
    }
    if (written.program !== version) yield* write(directory, format)
  })

const read = (directory: string) =>
  Effect.gen(function* () {
    const names = readdirSync(directory)
    if (names.includes(fileName)) {
      const decoded = Schema.decodeUnknownOption(VersionFile)(readFileSync(join(directory, fileName), "utf8"))
      if (Option.isSome(decoded)) return decoded
      return yield* new DataRefused({
        message: `The file ${join(directory, fileName)} is damaged. Restore the data directory from a copy.`
      })
    }
    if (names.every((name) => createdBefore.has(name))) return Option.none()
    return yield* new DataRefused({
      message: `The directory ${directory} is not a data directory: it contains other files and no ${fileName}. Use an empty directory, or one that does not exist yet.`
    })
  })

const write = (directory: string, format: number): Effect.Effect<void, DataUnusable> =>
  Effect.try({
    try: () => {
      const temporary = join(directory, `${fileName}.new`)
      writeFileSync(temporary, `${JSON.stringify({ format, program: version })}\n`, { flush: true })
      renameSync(temporary, join(directory, fileName))
    },
    catch: (cause) => unusable(directory, cause)
  })
