import { Console, Effect } from "effect"
import * as Journal from "../../../layers/journal/Journal.ts"

/** Writes texts to a journal in the folder of the argument until the disk takes no more. */
const program = Effect.gen(function* () {
  const journal = yield* Journal.make<string>({
    folder: process.argv[2] ?? "",
    isRecord: (value): value is string => typeof value === "string",
    replay: () => {},
    capture: () => []
  })
  let confirmed = 0
  const isFull = () => {
    journal.append("x".repeat(1_000))
    try {
      journal.flush()
      confirmed++
      return false
    } catch {
      return true
    }
  }
  while (!isFull());
  yield* Console.log(`confirmed ${confirmed}`)
}).pipe(Effect.scoped)

Effect.runFork(program)
