import { Result } from "effect"

declare global {
  interface JSON {
    rawJSON(text: string): RawNumber
    isRawJSON(value: unknown): value is RawNumber
  }
}

/**
 * A number that JavaScript cannot represent, as its JSON text. Not a JSON object, although its `typeof` is "object".
 */
export interface RawNumber {
  readonly rawJSON: string
}

/** Two readings of one JSON text. They are identical unless the text contains numbers of 2^53 or more. */
export interface ExactAndOrdinary<A> {
  /** Preserves numbers of 2^53 or more as `RawNumber`, for writing the value again. */
  readonly exact: A
  /** Rounds numbers of 2^53 or more to the nearest double, for calculations. */
  readonly ordinary: A
}

/** Throws what `JSON.parse` throws, and a `RangeError` for deep nesting together with such numbers. */
export const read = (text: string): ExactAndOrdinary<unknown> => {
  const ordinary: unknown = JSON.parse(text)
  return { exact: containsWideNumber(ordinary) ? JSON.parse(text, keepWideNumber) : ordinary, ordinary }
}

export const parse = (text: string): unknown => read(text).exact

/** Reads once if both are identical. Mistakes come from the ordinary reading, in which numbers are numbers. */
export const readBoth = <A, B, E>(
  { exact, ordinary }: ExactAndOrdinary<A>,
  read: (value: A) => Result.Result<B, E>
): Result.Result<ExactAndOrdinary<B>, E> =>
  exact === ordinary
    ? Result.map(read(exact), (same) => ({ exact: same, ordinary: same }))
    : Result.all({ ordinary: read(ordinary), exact: read(exact) })

const keepWideNumber = (_name: string, value: unknown, { source }: { readonly source?: string } = {}): unknown =>
  isWideNumber(value) && source !== undefined ? JSON.rawJSON(source) : value

const isWideNumber = (value: unknown): boolean => typeof value === "number" && Math.abs(value) >= 2 ** 53

/** Costs a fifth of a parse. Not recursive, because `JSON.parse` accepts any depth. */
const containsWideNumber = (json: unknown): boolean => {
  const pending: Array<object> = [[json]]
  for (const one of pending) {
    const members: ReadonlyArray<unknown> = Object.values(one)
    for (const member of members) {
      if (isWideNumber(member)) return true
      if (typeof member === "object" && member !== null) pending.push(member)
    }
  }
  return false
}
