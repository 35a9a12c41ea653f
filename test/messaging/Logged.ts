import { Logger } from "effect"

/** What is logged while its layer is provided, without times and fibers. */
export const logged = () => {
  const kept: Array<string> = []
  const logger = Logger.make(({ message }) => {
    kept.push((Array.isArray(message) ? message : [message]).map(String).join(" "))
  })
  return { layer: Logger.layer([logger]), lines: (): ReadonlyArray<string> => kept }
}
