import { Effect } from "effect"
import type { BenchFailed } from "./Child.ts"
import { number } from "./Markdown.ts"
import { median, spread } from "./Statistics.ts"

/** A GET and how long its answers took. */
export interface Answered {
  readonly name: string
  readonly bytes: number
  /** Milliseconds. */
  readonly times: ReadonlyArray<number>
}

export const tries = 5

/** Asks each path some times, one request after the other. */
export const ask = (
  read: (path: string) => Effect.Effect<string, BenchFailed>,
  questions: ReadonlyArray<readonly [name: string, path: string]>,
  say: (line: string) => void
): Effect.Effect<ReadonlyArray<Answered>, BenchFailed> =>
  Effect.forEach(
    questions,
    Effect.fnUntraced(function* ([name, path]) {
      say(name)
      const times: Array<number> = []
      let bytes = 0
      for (let n = 0; n < tries; n++) {
        const asked = performance.now()
        const answer = yield* read(path)
        times.push(performance.now() - asked)
        bytes = Buffer.byteLength(answer)
      }
      return { name, bytes, times }
    })
  )

export const table = (answered: ReadonlyArray<Answered>): ReadonlyArray<string> => [
  "| query | ms | MB |",
  "| --- | ---: | ---: |",
  ...answered.map(({ bytes, name, times }) => `| ${name} | ${spreadText(times)} | ${number(bytes / 1_000_000, 2)} |`)
]

const spreadText = (times: ReadonlyArray<number>): string => {
  const [least, most] = spread(times)
  return `${number(median(times), 0)} (${number(least, 0)}–${number(most, 0)})`
}
