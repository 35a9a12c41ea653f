import { closeSync, constants, fdatasync, fdatasyncSync, openSync, renameSync, rmSync, writeSync } from "node:fs"
import * as Files from "node:fs/promises"
import { Effect, type Scope } from "effect"
import { DataRefused } from "../data/DataRefused.ts"
import * as Frames from "./Frames.ts"
import * as Recovery from "./Recovery.ts"

export interface Options<Record> {
  /** The folder of the journal's files. It exists, and no other process uses it. */
  readonly folder: string
  /** A record without a kind that this version knows is refused. */
  readonly isRecord: (value: unknown) => value is Record
  /** Applies the records of earlier processes, in their order. */
  readonly replay: (record: Record) => void
  /** Captures the state as records that build it. Later changes must not show in the captured records. */
  readonly capture: () => Iterable<Record>
  /** A log of this number of bytes is replaced by a snapshot, unless the last snapshot was larger. Default: 16 MiB. */
  readonly rewriteBytes?: number | undefined
}

/** The disk is full or failing. The records are kept in memory, and the next flush tries again. */
export class JournalFailure extends Error {}

/** Snapshots are written in pieces of this number of bytes, so that other work continues in between. */
const pieceBytes = 262_144

/**
 * A log of state changes. `flush` hands all records to the kernel, so they survive the end of the process. A sync to
 * the disk follows within a second, so a power cut may lose the last second.
 */
export class Journal<Record> {
  readonly #options: Options<Record>
  readonly #minimum: number
  #number = 1
  #file = -1
  #position = 0
  #snapshotBytes = 0
  #pending: Array<Buffer> = []
  #isFlushScheduled = false
  #isUnsynced = false
  #isSyncing = false
  #rewriting: Promise<void> | undefined
  #isClosed = false
  #syncTimer: NodeJS.Timeout | undefined

  constructor(options: Options<Record>) {
    this.#options = options
    this.#minimum = options.rewriteBytes ?? 16_777_216
  }

  /** Replays what the folder contains. Returns the bytes of an unfinished record that were dropped. */
  open(): number {
    const { folder, isRecord, replay } = this.#options
    const { droppedBytes, logBytes, number, snapshotBytes } = Recovery.recover(folder, (record) => {
      if (!isRecord(record)) {
        throw new DataRefused({
          message: `The files in ${folder} contain a record that this version of svc-runtime does not know. Start the version that wrote them.`
        })
      }
      replay(record)
    })
    this.#number = number
    this.#position = logBytes
    this.#snapshotBytes = snapshotBytes
    this.#file = openLog(folder, number)
    this.#syncTimer = setInterval(() => this.#sync(), 1_000).unref()
    return droppedBytes
  }

  /** The record is in the kernel after the next `flush`, which follows in a later tick at the latest. */
  append(record: Record): void {
    this.#pending.push(Frames.encode(record))
    if (this.#isFlushScheduled) return
    this.#isFlushScheduled = true
    setImmediate(() => {
      this.#isFlushScheduled = false
      try {
        this.flush()
      } catch {
        // A caller that confirms a change flushes first, and sees the failure.
      }
    })
  }

  /** Throws `JournalFailure` if the records could not be written. */
  flush(): void {
    if (this.#pending.length === 0 || this.#isClosed) return
    const bytes = this.#pending.length === 1 ? this.#pending[0]! : Buffer.concat(this.#pending)
    try {
      // A repeated attempt starts at the same position, and so replaces what a failed one left there.
      for (let written = 0; written < bytes.length; ) {
        written += writeSync(this.#file, bytes, written, bytes.length - written, this.#position + written)
      }
    } catch (cause) {
      this.#pending = [bytes]
      throw new JournalFailure(`Data cannot be written to ${this.#options.folder}: ${messageOf(cause)}`, { cause })
    }
    this.#pending = []
    this.#position += bytes.length
    this.#isUnsynced = true
    if (this.#rewriting === undefined && this.#position > Math.max(this.#minimum, this.#snapshotBytes)) this.#rewrite()
  }

  /** Waits for a snapshot that is being written. */
  get rewritten(): Promise<void> {
    return this.#rewriting ?? Promise.resolve()
  }

  async close(): Promise<void> {
    clearInterval(this.#syncTimer)
    try {
      this.flush()
    } finally {
      this.#isClosed = true
      await this.#rewriting
      fdatasyncSync(this.#file)
      closeSync(this.#file)
    }
  }

  #sync(): void {
    if (!this.#isUnsynced || this.#isSyncing) return
    this.#isUnsynced = false
    this.#isSyncing = true
    fdatasync(this.#file, (failure) => {
      this.#isSyncing = false
      if (failure !== null) this.#isUnsynced = true
    })
  }

  /** Continues in a new log. When a snapshot of the state before it is complete, the old files are removed. */
  #rewrite(): void {
    const { capture, folder } = this.#options
    const number = this.#number + 1
    try {
      fdatasyncSync(this.#file)
      const next = openLog(folder, number)
      closeSync(this.#file)
      this.#file = next
    } catch {
      // The old log stays in use, and the next flush tries again.
      return
    }
    this.#number = number
    this.#position = 0
    this.#rewriting = this.#writeSnapshot(number, capture()).finally(() => {
      this.#rewriting = undefined
    })
  }

  async #writeSnapshot(number: number, records: Iterable<Record>): Promise<void> {
    const { folder } = this.#options
    const path = Recovery.fileOf(folder, number, "snapshot")
    try {
      const bytes = await this.#writeRecords(`${path}.new`, records)
      if (bytes === undefined) return
      renameSync(`${path}.new`, path)
      this.#snapshotBytes = bytes
      Recovery.removeOlder(folder, number)
    } catch {
      // The old files stay valid. The next attempt follows when the new log has grown as well.
      rmSync(`${path}.new`, { force: true })
    }
  }

  /** Returns `undefined` if the journal was closed meanwhile. */
  async #writeRecords(path: string, records: Iterable<Record>): Promise<number | undefined> {
    const file = await Files.open(path, "w", 0o600)
    try {
      return await this.#writeFrames(file, records)
    } finally {
      await file.close()
    }
  }

  async #writeFrames(file: Files.FileHandle, records: Iterable<Record>): Promise<number | undefined> {
    let total = 0
    let piece: Array<Buffer> = []
    let size = 0
    const write = async () => {
      await file.writeFile(Buffer.concat(piece))
      total += size
      piece = []
      size = 0
    }
    for (const record of records) {
      const frame = Frames.encode(record)
      piece.push(frame)
      size += frame.length
      if (size >= pieceBytes) await write()
      if (this.#isClosed) return undefined
    }
    await write()
    await file.sync()
    return total
  }
}

const openLog = (folder: string, number: number): number =>
  // "a" would ignore the position of a write.
  openSync(Recovery.fileOf(folder, number, "log"), constants.O_RDWR | constants.O_CREAT, 0o600)

const messageOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

/** Opens a journal, which closes with the scope. Logs a warning if a crash left an unfinished record. */
export const make = Effect.fnUntraced(function* <Record>(
  options: Options<Record>
): Effect.fn.Return<Journal<Record>, DataRefused, Scope.Scope> {
  const journal = new Journal(options)
  const dropped = yield* Effect.try({
    try: () => journal.open(),
    catch: (cause) =>
      cause instanceof DataRefused
        ? cause
        : new DataRefused({ message: `The files in ${options.folder} cannot be used: ${messageOf(cause)}.` })
  })
  yield* Effect.addFinalizer(() =>
    Effect.catchCause(
      Effect.promise(() => journal.close()),
      (cause) =>
        Effect.logError(`The last changes in ${options.folder} are lost, because they cannot be written`, cause)
    )
  )
  if (dropped > 0) {
    yield* Effect.logWarning(
      `The last ${dropped} bytes in ${options.folder} were an unfinished record of a crash, and were dropped`
    )
  }
  return journal
})
