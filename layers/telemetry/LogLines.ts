import { Effect, Logger, LogLevel, References, type Scope, type Tracer } from "effect"
import * as LogLine from "./LogLine.ts"

/** Where lines go. */
export interface Output {
  /** Calls `taken` once it needs the bytes no longer, whether they were written or not. */
  readonly write: (bytes: Uint8Array, taken: () => void) => unknown
  /** Bytes that were written and not read yet. */
  readonly writableLength: number
}

export interface LogLines {
  readonly logger: Logger.Logger<unknown, void>
  /** Writes lines of level `INFO` that have this message, and whose fields are members of JSON, each after a comma. */
  readonly info: (message: string) => (at: number, members: string) => void
}

/** A write costs as much as making ten lines, so lines are written together after so many milliseconds. */
const gatherMs = 50
const gatherBytes = 65_536
/** A character has at most so many bytes in UTF-8. */
const mostBytes = 3
/** Where nobody reads the output, further lines are dropped and counted. */
const mostUnread = 16 * 1024 * 1024

/** Writes what is left when the scope closes, and when the process exits. */
export const make = (output: Output, role: string): Effect.Effect<LogLines, never, Scope.Scope> =>
  Effect.gen(function* () {
    // the same memory again and again: text that waits in the heap costs three times as much
    const spare: Array<Buffer> = []
    let gathering: Buffer = Buffer.allocUnsafeSlow(gatherBytes)
    let gathered = 0
    let dropped = 0
    let timer: NodeJS.Timeout | undefined
    const flush = () => {
      clearTimeout(timer)
      timer = undefined
      if (gathered === 0) return
      const full = gathering
      const bytes = full.subarray(0, gathered)
      gathering = spare.pop() ?? Buffer.allocUnsafeSlow(gatherBytes)
      gathered = 0
      output.write(bytes, () => {
        if (spare.length === 0) spare.push(full)
      })
    }
    const gather = (line: string) => {
      const most = line.length * mostBytes
      if (most > gatherBytes - gathered) flush()
      if (most > gatherBytes) output.write(Buffer.from(line), ignored)
      else gathered += gathering.write(line, gathered)
    }
    const write = (line: string, at: number, isUrgent: boolean) => {
      if (output.writableLength > mostUnread) {
        dropped++
        return
      }
      if (dropped > 0) {
        const members = `,"lines":${dropped}`
        dropped = 0
        gather(
          LogLine.head("WARN", "lines of the log were dropped: nobody read them", role)(at) + members + LogLine.end
        )
      }
      gather(line)
      if (isUrgent) flush()
      else timer ??= setTimeout(flush, gatherMs).unref()
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
        const line = LogLine.text({
          at: date.getTime(),
          level: logLevel,
          role,
          said: Array.isArray(message) ? message : [message],
          cause,
          annotations: fiber.getRef(References.CurrentLogAnnotations),
          trace: span === undefined || isUnrecorded(span) ? undefined : span
        })
        // before the process might be killed
        write(line, date.getTime(), LogLevel.isGreaterThanOrEqualTo(logLevel, "Warn"))
      }),
      info: (message) => {
        const head = LogLine.head("INFO", message, role)
        return (at, members) => write(head(at) + members + LogLine.end, at, false)
      }
    }
  })

/** The span of a part that is not traced: all such spans have one id, which is none. */
const isUnrecorded = ({ traceId }: Tracer.AnySpan): boolean => traceId === "noop"

/** To standard output. A reader that goes away does not end the process. */
export const standard = (role: string): Effect.Effect<LogLines, never, Scope.Scope> =>
  Effect.andThen(
    Effect.acquireRelease(
      Effect.sync(() => process.stdout.on("error", ignored)),
      () => Effect.sync(() => process.stdout.off("error", ignored))
    ),
    make(process.stdout, role)
  )

const ignored = () => {}
