import type { Letter } from "../../../api/TaskTypes.ts"
import { flatten } from "../../../shared/tasks/flatten.ts"

/** A member of the letters, with its value in each of them. `undefined`: this letter has none. */
export interface Compared {
  readonly path: string
  readonly values: ReadonlyArray<string | undefined>
  readonly isSame: boolean
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""))

/** Every member of the bodies, headers and failures. Those that differ come first. */
export const compareLetters = (
  letters: ReadonlyArray<Pick<Letter, "body" | "exception_message" | "headers" | "retry_attempt">>
): ReadonlyArray<Compared> => {
  const flat = letters.map(({ body, exception_message, headers, retry_attempt }) =>
    flatten({ body, headers, exception_message: exception_message ?? null, retry_attempt })
  )
  const paths = [...new Set(flat.flatMap(Object.keys))]
  const compared = paths.map((path): Compared => {
    const values = flat.map((one) => (Object.hasOwn(one, path) ? textOf(one[path]) : undefined))
    return { path, values, isSame: new Set(values).size === 1 }
  })
  return [...compared.filter(({ isSame }) => !isSame), ...compared.filter(({ isSame }) => isSame)]
}
