import { Effect, Logger, LogLevel, References, type Scope, type Tracer } from "effect"
import * as LogLine from "./LogLine.ts"

/** Where lines go. */
export interface Output {
  readonly write: (text: string) => unknown
  /** Bytes that were written and not read yet. */
  readonly writableLength: number
}

export interface LogLines {
  readonly logger: Logger.Logger<unknown, void>
  /** A line of level `INFO` whose fields are members of JSON already, each after a comma. */
  readonly info: (at: number, message: string, members: string) => void
}

/** A write costs as much as making ten lines, so lines are written together after so many milliseconds. */
const gatherMs = 20
const gatherCharacters = 65_536
/** Where nobody reads the output, further lines are dropped and counted. */
const mostUnread = 16 * 1024 * 1024

/** Writes what is left when the scope closes, and when the process exits. */
export const make = (output: Output, role: string): Effect.Effect<LogLines, never, Scope.Scope> =>
  Effect.gen(function* () {
    let gathered = ""
    let dropped = 0
    let timer: NodeJS.Timeout | undefined
    const flush = () => {
      clearTimeout(timer)
      timer = undefined
      if (gathered === "") return
      const lines = gathered
      gathered = ""
      output.write(lines)
    }
    const write = (line: string, at: number, isUrgent: boolean) => {
      if (output.writableLength > mostUnread) {
        dropped++
        return
      }
      if (dropped > 0) {
        const members = `,"lines":${dropped}`
        dropped = 0
        gathered += LogLine.head(at, "WARN", "lines of the log were dropped: nobody read them", role) + members
        gathered += LogLine.end
      }
      gathered += line
      if (isUrgent || gathered.length > gatherCharacters) flush()
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
      info: (at, message, members) => write(LogLine.head(at, "INFO", message, role) + members + LogLine.end, at, false)
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
