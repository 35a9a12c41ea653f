import { Logger, type LogLevel, Predicate } from "effect"

interface Logged {
  readonly level: LogLevel.LogLevel
  readonly sentence: string
  readonly fields: Readonly<Record<string, unknown>>
}

/** What is logged while its layer is provided, without times and fibers. */
export const logged = () => {
  const kept: Array<string> = []
  const entries: Array<Logged> = []
  const logger = Logger.make(({ logLevel, message }) => {
    const parts: ReadonlyArray<unknown> = Array.isArray(message) ? message : [message]
    kept.push(parts.map(String).join(" "))
    entries.push({
      level: logLevel,
      sentence: String(parts[0]),
      fields: Object.assign({}, ...parts.filter(Predicate.isObject))
    })
  })
  return {
    layer: Logger.layer([logger]),
    lines: (): ReadonlyArray<string> => kept,
    entries: (): ReadonlyArray<Logged> => entries
  }
}
