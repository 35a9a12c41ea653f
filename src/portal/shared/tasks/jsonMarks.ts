import type { JsonProblem } from "../editor/problems.ts"
import { isObject } from "./hidden.ts"

/** The mistakes in the values of a document, by their paths. */
export interface JsonMarks {
  readonly at: (path: string) => ReadonlyArray<string>
  /** Whether something below the path is marked. */
  readonly isAround: (path: string) => boolean
}

export const rootPath = ""

/** A path as one text. A name with the separator in it may show a mark at another place, and does nothing else. */
export const pathTo = (path: string, step: string | number): string => `${path}\u0000${step}`

/** Places each problem at its value, or at the nearest value around it, with the names that are missing there. */
export const marksOf = (value: unknown, problems: ReadonlyArray<JsonProblem>): JsonMarks => {
  const messages = new Map<string, ReadonlyArray<string>>()
  const around = new Set<string>()
  for (const { message, path } of problems) {
    let at = rootPath
    let found = value
    let depth = 0
    for (const step of path) {
      if (!isObject(found) || !Object.hasOwn(found, step)) break
      around.add(at)
      at = pathTo(at, step)
      found = Reflect.get(found, step)
      depth++
    }
    const missing = path.slice(depth).join(".")
    messages.set(at, [...(messages.get(at) ?? []), missing === "" ? message : `${missing} ${message}`])
  }
  return { at: (path) => messages.get(path) ?? [], isAround: (path) => around.has(path) }
}
