import { Console, Effect } from "effect"
import { BenchFailed } from "../Child.ts"
import * as Machine from "../Machine.ts"
import * as Contenders from "../messaging/Contenders.ts"
import * as Graph from "./Graph.ts"
import * as Hub from "./Hub.ts"
import * as Report from "./Report.ts"
import * as Streams from "./Streams.ts"

interface Plan {
  readonly hubSeconds: number
  readonly streams: Streams.Plan
}

/** About four minutes. */
const full: Plan = {
  hubSeconds: 20,
  streams: { streams: 1_000, events: 5_000, everyMs: 2, rounds: 7, seconds: 2, connections: 32 }
}

/** About one and a half. */
const quick: Plan = {
  hubSeconds: 5,
  streams: { streams: 1_000, events: 2_000, everyMs: 2, rounds: 3, seconds: 1, connections: 32 }
}

/** Everything of the status plane that has a goal: the hub, event streams, requests, graphs. */
export const run = Effect.fnUntraced(
  function* (isQuick: boolean, nodeFlags: ReadonlyArray<string>, say: (line: string) => void) {
    const plan = isQuick ? quick : full
    const hub = yield* Hub.measure(plan.hubSeconds, nodeFlags, say)
    const streams = yield* Streams.measure(plan.streams, nodeFlags, say)
    say("graphs")
    const graphs = Graph.sizes.map((size) => Graph.graphBuild(size))
    yield* Console.log(Report.report({ hub, streams, graphs }, plan.streams, yield* Machine.describe))
  },
  Effect.provide(Contenders.broker),
  Effect.mapError((error) => new BenchFailed({ message: error.message }))
)
