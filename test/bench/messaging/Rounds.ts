import { Effect } from "effect"
import type { BenchFailed } from "../Child.ts"
import { turned } from "../Rounds.ts"
import { type Contender, descriptions, type Window, windows } from "./Contenders.ts"
import type { Plan } from "./Plan.ts"
import { Measured, type Scenario, trips } from "./Scenarios.ts"
import { type Done, type Kind, kinds, type Work } from "./Work.ts"

/**
 * Interleaved, as the gateway's rounds are: a measure is taken of every contender before the next measure begins. What
 * was published with the window of consumers' backlogs is consumed at once, what was published otherwise is dropped.
 */
export const run = Effect.fnUntraced(function* (
  contenders: ReadonlyArray<Contender>,
  plan: Plan,
  say: (line: string) => void
) {
  const measured = new Measured()

  const each = (
    title: string,
    round: number,
    takes: (contender: Contender) => boolean,
    measure: (contender: Contender) => Effect.Effect<void, BenchFailed>
  ) =>
    Effect.forEach(
      turned(contenders.filter(takes), round),
      (contender) => {
        say(`${title}: ${contender.name}`)
        return Effect.andThen(measure(contender), Effect.sleep(settles))
      },
      { discard: true }
    )

  const publish = (kind: Kind, window: Window) =>
    Effect.fnUntraced(function* (contender: Contender) {
      const ms = window === 1 ? plan.aloneMs : plan.publishMs
      const { messages } = yield* take(measured, `publish ${kind} ${window}`, contender, {
        _tag: "Publish",
        kind,
        window,
        ms
      })
      if (window !== backlogWindow(contender)) yield* contender.work({ _tag: "Empty", kind })
      else yield* take(measured, `consume ${kind}`, contender, { _tag: "Consume", kind, messages })
    })

  yield* each(
    "warming up",
    0,
    () => true,
    (contender) => warm(contender, plan)
  )
  for (let round = 0; round < plan.rounds; round++) {
    const of = `round ${round + 1} of ${plan.rounds}`
    for (const kind of kinds) {
      for (const window of windows) {
        yield* each(`${of}, ${kind} queue, window ${window}`, round, knows(kind, window), publish(kind, window))
      }
    }
    for (const window of trips) {
      yield* each(`${of}, ${window} round trips at once`, round, waits, (contender) =>
        Effect.asVoid(take(measured, `trip ${window}`, contender, { _tag: "RoundTrip", window, ms: plan.tripMs }))
      )
    }
  }
  return measured
})

/** The broker may still be busy with what was dropped. */
const settles = "300 millis"

const knows = (kind: Kind, window: Window) => (contender: Contender) =>
  descriptions[contender.name].kinds.includes(kind) && descriptions[contender.name].windows.includes(window)

const waits = ({ name }: Contender): boolean => descriptions[name].waits

const backlogWindow = ({ name }: Contender): Window => (descriptions[name].windows.includes(256) ? 256 : 1)

const take = Effect.fnUntraced(function* (measured: Measured, scenario: Scenario, contender: Contender, work: Work) {
  const before = contender.cpu()
  const done = yield* contender.work(work)
  const after = contender.cpu()
  const into = measured.into(scenario, contender.name)
  measured.failed += done.failed
  if (done.problem !== undefined && !measured.problems.has(contender.name)) {
    measured.problems.set(contender.name, done.problem)
  }
  if (done.messages === 0) return done
  into.add("rate", perSecond(done))
  if (done.p50 !== undefined) into.add("p50", done.p50)
  if (done.p99 !== undefined) into.add("p99", done.p99)
  into.add("cpu", (after.own - before.own) / done.messages)
  into.add("serverCpu", (after.servers - before.servers) / done.messages)
  return done
})

export const perSecond = ({ elapsedMs, messages }: Done): number => (messages / elapsedMs) * 1_000

const warm = Effect.fnUntraced(function* (contender: Contender, { warmMs }: Plan) {
  for (const kind of descriptions[contender.name].kinds) {
    const window = backlogWindow(contender)
    const { messages } = yield* contender.work({ _tag: "Publish", kind, window, ms: warmMs })
    yield* contender.work({ _tag: "Consume", kind, messages })
  }
  if (waits(contender)) yield* contender.work({ _tag: "RoundTrip", window: 64, ms: warmMs })
})
