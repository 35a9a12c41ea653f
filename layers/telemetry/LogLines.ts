import { Effect, Logger, LogLevel, References, type Scope, type Tracer } from "effect"
import * as LogLine from "./LogLine.ts"

export interface Output {
  /** Calls `onDone` when the bytes are no longer needed, written or not. */
  readonly write: (bytes: Uint8Array, onDone: () => void) => unknown
  /** Written bytes that the reader has not taken. */
  readonly writableLength: number
}

export interface LogLines {
  readonly logger: Logger.Logger<unknown, void>
  /** Returns a function that logs `message` at level INFO. `members` are JSON members, each with a leading comma. */
  readonly info: (message: string) => (at: number, members: string) => void
}

/** One write costs as much as formatting ten lines, so lines are collected for this time and written together. */
const flushMs = 50
const bufferBytes = 65_536
/** UTF-8 bytes per UTF-16 code unit. */
const maxBytesPerCharacter = 3
/** Above this limit, lines are dropped and counted. */
const maxUnreadBytes = 16 * 1024 * 1024

/** Remaining lines are written when the scope closes and when the process exits. */
export const make = (output: Output, role: string): Effect.Effect<LogLines, never, Scope.Scope> =>
  Effect.gen(function* () {
    // Buffers are reused: text that waits in the heap costs three times as much.
    const spareBuffers: Array<Buffer> = []
    let buffer: Buffer = Buffer.allocUnsafeSlow(bufferBytes)
    let bufferedBytes = 0
    let dropped = 0
    let timer: NodeJS.Timeout | undefined
    const flush = () => {
      clearTimeout(timer)
      timer = undefined
      if (bufferedBytes === 0) return
      const full = buffer
      const bytes = full.subarray(0, bufferedBytes)
      buffer = spareBuffers.pop() ?? Buffer.allocUnsafeSlow(bufferBytes)
      bufferedBytes = 0
      output.write(bytes, () => {
        if (spareBuffers.length === 0) spareBuffers.push(full)
      })
    }
    const append = (line: string) => {
      const maxLineBytes = line.length * maxBytesPerCharacter
      if (maxLineBytes > bufferBytes - bufferedBytes) flush()
      if (maxLineBytes > bufferBytes) output.write(Buffer.from(line), noop)
      else bufferedBytes += buffer.write(line, bufferedBytes)
    }
    const write = (line: string, at: number, isUrgent: boolean) => {
      if (output.writableLength > maxUnreadBytes) {
        dropped++
        return
      }
      if (dropped > 0) {
        const members = `,"lines":${dropped}`
        dropped = 0
        append(
          LogLine.linePrefix("WARN", "log lines were dropped because nothing read the output", role)(at) +
            members +
            LogLine.lineEnd
        )
      }
      append(line)
      if (isUrgent) flush()
      else timer ??= setTimeout(flush, flushMs).unref()
    }
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
          role,
          parts: Array.isArray(message) ? message : [message],
          cause,
          annotations: fiber.getRef(References.CurrentLogAnnotations),
          trace: span === undefined || isNoopSpan(span) ? undefined : span
        })
        // Warnings and errors are flushed at once, because the process may be killed next.
        write(line, date.getTime(), LogLevel.isGreaterThanOrEqualTo(logLevel, "Warn"))
      }),
      info: (message) => {
        const head = LogLine.linePrefix("INFO", message, role)
        return (at, members) => write(head(at) + members + LogLine.lineEnd, at, false)
      }
    }
  })

/** Untraced spans all have the same id, which identifies nothing. */
const isNoopSpan = ({ traceId }: Tracer.AnySpan): boolean => traceId === "noop"

/** Logs to standard output. The process continues when the reader goes away. */
export const toStandardOutput = (role: string): Effect.Effect<LogLines, never, Scope.Scope> =>
  Effect.andThen(
    Effect.acquireRelease(
      Effect.sync(() => process.stdout.on("error", noop)),
      () => Effect.sync(() => process.stdout.off("error", noop))
    ),
    make(process.stdout, role)
  )

const noop = () => {}
