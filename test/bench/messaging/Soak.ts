import { Effect, Option } from "effect"
import { Broker } from "../../../src/services/Broker.ts"
import { BenchFailed } from "../Child.ts"
import * as Memory from "../Memory.ts"
import type { Contender } from "./Contenders.ts"
import { type Done, placesOf } from "./Work.ts"

export interface Soaked {
  readonly minutes: number
  readonly done: Done
  readonly memory: Memory.Memory
  /** In the task queue when all is said and done. */
  readonly left: number
}

const window = 64

/** Round trips with their statuses, for as long as it takes to see whether memory and messages hold. */
export const run = Effect.fnUntraced(function* (contender: Contender, prefix: string, minutes: number) {
  const broker = yield* Broker
  const [done, memory] = yield* Memory.watched(
    contender.child.pid,
    contender.work({ _tag: "RoundTrip", window, ms: minutes * 60_000 })
  )
  const left = yield* Effect.mapError(
    broker.inspect(placesOf(prefix, "classic").queue),
    ({ message }) => new BenchFailed({ message })
  )
  const soaked: Soaked = {
    minutes,
    done,
    memory,
    left: Option.match(left, { onNone: () => 0, onSome: ({ messages }) => messages })
  }
  return soaked
})
