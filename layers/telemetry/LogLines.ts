import { Effect, Logger, LogLevel, References, type Scope, type Tracer } from "effect"
import * as LogLine from "./LogLine.ts"

interface Output {
  /** Must call `onDone` when it no longer needs the bytes, even if writing failed. */
  readonly write: (bytes: Uint8Array, onDone: () => void) => unknown
  /** The number of bytes that the reader has not accepted yet. */
  readonly writableLength: number
}

interface LogLines {
  readonly logger: Logger.Logger<unknown, void>
  /** Returns a function that logs `message` with level INFO. `members` is JSON text that starts with a comma. */
  readonly info: (message: string) => (at: number, members: string) => void
}

/** One write costs as much as formatting ten lines, so lines are collected for this time in milliseconds. */
const flushMs = 50
const bufferBytes = 65_536
/** A UTF-16 code unit has at most this many bytes in UTF-8. */
const maxBytesPerCharacter = 3
/** If more bytes than this wait for the reader of the output, further lines are dropped and counted. */
const maxUnreadBytes = 16 * 1024 * 1024

class LineBuffer {
  readonly #output: Output
  readonly #source: LogLine.Source
  /** Lines are encoded immediately. Keeping strings until the flush would take three times the CPU. */
  readonly #spareBuffers: Array<Buffer> = []
  #buffer: Buffer = Buffer.allocUnsafeSlow(bufferBytes)
  #bufferedBytes = 0
  #dropped = 0
  #timer: NodeJS.Timeout | undefined

  constructor(output: Output, source: LogLine.Source) {
    this.#output = output
    this.#source = source
  }

  add(line: string, at: number, isUrgent: boolean): void {
    if (this.#output.writableLength > maxUnreadBytes) {
      this.#dropped++
      return
    }
    if (this.#dropped > 0) this.#reportDropped(at)
    this.#append(line)
    if (isUrgent) this.flush()
    else this.#timer ??= setTimeout(() => this.flush(), flushMs).unref()
  }

  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#bufferedBytes === 0) return
    const full = this.#buffer
    const bytes = full.subarray(0, this.#bufferedBytes)
    this.#buffer = this.#spareBuffers.pop() ?? Buffer.allocUnsafeSlow(bufferBytes)
    this.#bufferedBytes = 0
    this.#output.write(bytes, () => {
      if (this.#spareBuffers.length === 0) this.#spareBuffers.push(full)
    })
  }

  #append(line: string): void {
    const maxLineBytes = line.length * maxBytesPerCharacter
    if (maxLineBytes > bufferBytes - this.#bufferedBytes) this.flush()
    if (maxLineBytes > bufferBytes) this.#output.write(Buffer.from(line), noop)
    else this.#bufferedBytes += this.#buffer.write(line, this.#bufferedBytes)
  }

  #reportDropped(at: number): void {
    const prefix = LogLine.linePrefix("WARN", "log lines were dropped because nothing read the output", this.#source)
    this.#append(`${prefix(at)},"lines":${this.#dropped}${LogLine.lineEnd}`)
    this.#dropped = 0
  }
}

/** Lines that are still buffered are written when the scope closes and when the process exits. */
export const make = (output: Output, source: LogLine.Source): Effect.Effect<LogLines, never, Scope.Scope> =>
  Effect.gen(function* () {
    const lines = new LineBuffer(output, source)
    const flush = () => lines.flush()
    process.on("exit", flush)
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        flush()
        process.off("exit", flush)
      })
    )
    return {
      logger: Logger.make(({ cause, date, fiber, logLevel, message }) => {
        const span = fiber.cache.span
        const line = LogLine.format({
          at: date.getTime(),
          level: logLevel,
          source,
          parts: Array.isArray(message) ? message : [message],
          cause,
          annotations: fiber.getRef(References.CurrentLogAnnotations),
          trace: span === undefined || isNoopSpan(span) ? undefined : span
        })
        // Warnings and errors are written at once, because the process may be killed next.
        lines.add(line, date.getTime(), LogLevel.isGreaterThanOrEqualTo(logLevel, "Warn"))
      }),
      info: (message) => {
        const prefix = LogLine.linePrefix("INFO", message, source)
        return (at, members) => lines.add(prefix(at) + members + LogLine.lineEnd, at, false)
      }
    }
  })

/** All spans that are not traced have the trace id `noop`. */
const isNoopSpan = ({ traceId }: Tracer.AnySpan): boolean => traceId === "noop"

/** Writes log lines to standard output. If its reader closes the pipe, the process continues without a log. */
export const toStandardOutput = (source: LogLine.Source): Effect.Effect<LogLines, never, Scope.Scope> =>
  Effect.andThen(
    Effect.acquireRelease(
      Effect.sync(() => process.stdout.on("error", noop)),
      () => Effect.sync(() => process.stdout.off("error", noop))
    ),
    make(process.stdout, source)
  )

const noop = () => {}
