import type { Letter } from "../../../api/TaskTypes.ts"
import { flatten } from "../../../shared/tasks/flatten.ts"
import { type Hidden, withoutSecrets } from "../../../shared/tasks/hidden.ts"

/** A member of the letters, with its value in each of them. `undefined`: this letter has none. */
export interface Compared {
  readonly path: string
  readonly values: ReadonlyArray<string | undefined>
  readonly isSame: boolean
}

export interface Comparison {
  /** Every member of the bodies, headers and failures. Those that differ come first. */
  readonly members: ReadonlyArray<Compared>
  /** Counts the values that are secrets by their names, and has these names. */
  readonly hidden: Pick<Hidden, "count" | "names">
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""))

/** Secrets that differ are different also where they are hidden. */
export const compareLetters = (
  letters: ReadonlyArray<Pick<Letter, "body" | "exception_message" | "headers" | "retry_attempt">>,
  withSecrets: boolean
): Comparison => {
  const whole = letters.map(({ body, exception_message, headers, retry_attempt }) => ({
    body,
    headers,
    exception_message: exception_message ?? null,
    retry_attempt
  }))
  const hidden = whole.map(withoutSecrets)
  const flat = whole.map(flatten)
  const shown = withSecrets ? flat : hidden.map(({ value }) => flatten(value))
  const paths = [...new Set(flat.flatMap(Object.keys))]
  const compared = paths.map((path): Compared => {
    const valuesIn = (all: typeof flat) => all.map((one) => (Object.hasOwn(one, path) ? textOf(one[path]) : undefined))
    return { path, values: valuesIn(shown), isSame: new Set(valuesIn(flat)).size === 1 }
  })
  return {
    members: [...compared.filter(({ isSame }) => !isSame), ...compared.filter(({ isSame }) => isSame)],
    hidden: {
      count: hidden.reduce((sum, { count }) => sum + count, 0),
      names: [...new Set(hidden.flatMap(({ names }) => names))]
    }
  }
}
