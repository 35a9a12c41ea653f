import { readdirSync, readFileSync, rmSync, truncateSync } from "node:fs"
import { join } from "node:path"
import { DataRefused } from "../data/DataRefused.ts"
import * as Frames from "./Frames.ts"

/** The snapshot of a number has the state before the first record of the log of the same number. */
export const fileOf = (folder: string, number: number, kind: "log" | "snapshot"): string =>
  join(folder, `${String(number).padStart(8, "0")}.${kind}`)

const numbersOf = (folder: string, kind: "log" | "snapshot"): ReadonlyArray<number> =>
  readdirSync(folder)
    .flatMap((name) => {
      const [, digits] = new RegExp(`^(\\d{8})\\.${kind}$`).exec(name) ?? []
      return digits === undefined ? [] : [Number(digits)]
    })
    .sort((a, b) => a - b)

/** Removes the files that the snapshot `number` replaces, and snapshots that were not finished. */
export const removeOlder = (folder: string, number: number): void => {
  for (const kind of ["log", "snapshot"] as const) {
    for (const older of numbersOf(folder, kind)) if (older < number) rmSync(fileOf(folder, older, kind))
  }
  for (const name of readdirSync(folder)) if (name.endsWith(".new")) rmSync(join(folder, name), { force: true })
}

export interface Recovered {
  /** The number of the log to continue. */
  readonly number: number
  /** The bytes of the log to continue. */
  readonly logBytes: number
  readonly snapshotBytes: number
  /** The bytes of an unfinished record, which were cut off the log. */
  readonly droppedBytes: number
}

/** Reads the newest snapshot, and the logs since. Throws `DataRefused` if a file is damaged or missing. */
export const recover = (folder: string, onRecord: (record: unknown) => void): Recovered => {
  const snapshot = numbersOf(folder, "snapshot").at(-1)
  const first = snapshot ?? 1
  removeOlder(folder, first)
  const snapshotBytes = snapshot === undefined ? 0 : readWhole(fileOf(folder, snapshot, "snapshot"), onRecord)
  const logs = numbersOf(folder, "log")
  const last = logs.at(-1) ?? first
  for (let number = first; number < last; number++) {
    if (!logs.includes(number)) {
      throw new DataRefused({
        message: `The file ${fileOf(folder, number, "log")} is missing. Restore the data directory from a copy.`
      })
    }
    readWhole(fileOf(folder, number, "log"), onRecord)
  }
  if (!logs.includes(last)) return { number: last, logBytes: 0, snapshotBytes, droppedBytes: 0 }
  const path = fileOf(folder, last, "log")
  const file = readFileSync(path)
  const { offset, rest } = Frames.read(file, onRecord)
  if (rest === "damage") throw damaged(path, offset)
  if (rest === "tail") truncateSync(path, offset)
  return { number: last, logBytes: offset, snapshotBytes, droppedBytes: file.length - offset }
}

/** Only the last log can end in the middle of a record. Everything before was synced to the disk. */
const readWhole = (path: string, onRecord: (record: unknown) => void): number => {
  const file = readFileSync(path)
  const { offset, rest } = Frames.read(file, onRecord)
  if (rest !== "nothing") throw damaged(path, offset)
  return file.length
}

const damaged = (path: string, offset: number) =>
  new DataRefused({
    message: `The file ${path} is damaged at byte ${offset}: later records are whole, so they were not lost in a crash. Restore the data directory from a copy. To continue without the records from there on, run: truncate --size=${offset} ${path}`
  })
