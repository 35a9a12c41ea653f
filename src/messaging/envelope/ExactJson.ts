import { Result } from "effect"

declare global {
  interface JSON {
    /** A value that is written as this text. */
    rawJSON(text: string): RawNumber
    isRawJSON(value: unknown): value is RawNumber
  }
}

/** A number that JavaScript does not have, as the text that it came as. No JSON object, though `typeof` calls it one. */
export interface RawNumber {
  readonly rawJSON: string
}

/** What a text says, for two readers. It is one and the same where JavaScript has all of its numbers. */
export interface ExactAndOrdinary<A> {
  /** For who writes it again: a number from 2^53 on is a `RawNumber`, and is written as it came. */
  readonly exact: A
  /** For who counts with it: such a number is the nearest that there is. */
  readonly ordinary: A
}

/** Throws what `JSON.parse` throws, and a `RangeError` where such numbers are, and something is nested very deeply. */
export const read = (text: string): ExactAndOrdinary<unknown> => {
  const ordinary: unknown = JSON.parse(text)
  return { exact: containsWideNumber(ordinary) ? JSON.parse(text, keepWideNumber) : ordinary, ordinary }
}

/** The exact one alone. */
export const parse = (text: string): unknown => read(text).exact

/** Once where both are the same. What is wrong is told of the ordinary one, whose numbers are called numbers. */
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

/** To look is a fifth of a parse, and to take every number as a text is six. Not recursive: JSON is read at any depth. */
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
