import { ApiError } from "../../../api/ApiError.ts"

export interface BulkResult<Done> {
  readonly id: string
  readonly done: Done | undefined
  /** Why it was not done, in the server's words. */
  readonly failure: string | undefined
}

/** So many requests run at once: a selection must not crowd out the requests of others. */
const atOnce = 4

/** Does the same with each of the ids. One that fails does not stop the others; `signal` stops those that have not begun. */
export const runBulk = async <Done>(
  ids: ReadonlyArray<string>,
  act: (id: string) => Promise<Done>,
  onProgress: (results: ReadonlyArray<BulkResult<Done>>) => void,
  signal: AbortSignal
): Promise<ReadonlyArray<BulkResult<Done>>> => {
  const results: Array<BulkResult<Done>> = []
  const waiting = [...ids]
  const work = async () => {
    for (let id = waiting.shift(); id !== undefined && !signal.aborted; id = waiting.shift()) {
      const result = await act(id).then(
        (done) => ({ id, done, failure: undefined }),
        (cause: unknown) => ({ id, done: undefined, failure: sentenceOf(cause) })
      )
      results.push(result)
      onProgress([...results])
    }
  }
  await Promise.all(Array.from({ length: atOnce }, work))
  return results
}

const sentenceOf = (cause: unknown): string =>
  cause instanceof ApiError || cause instanceof Error ? cause.message : String(cause)
