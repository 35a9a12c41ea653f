import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as SeededRandom from "../faults/SeededRandom.ts"
import * as RealTime from "../RealTime.ts"
import { inMemory, variants } from "./DeadLetterServer.ts"
import { type Fates, play, type Scenario } from "./ReplayCrashing.ts"

/** Of a thousand messages: every step, or some. */
const isWhole = process.env["SVC_TEST_REPLAY_STEPS"] === "all"

const fates = ["before", "after"] as const

const random = SeededRandom.of(7)

/** A job is divided into so many parts, of each of which one step is tried where not all of them are. */
const samples = Array.from({ length: isWhole ? 40 : 5 }, () => ({
  share: random(),
  fate: SeededRandom.chosen(random, fates)
}))

const patience = isWhole ? 3_600_000 : 300_000

type Doors = (typeof variants)[number]["doors"]

const run = (doors: Doors, scenario: Scenario, fates: Fates) =>
  play(scenario, fates).pipe(Effect.provide(RealTime.layer(doors)))

/** How many steps a job has whose process lives. */
const counted = Effect.fnUntraced(function* (doors: Doors, scenario: Scenario) {
  let steps = 0
  const { crashes, unknown } = yield* run(doors, scenario, () => {
    steps++
    return "lives"
  })
  assert.deepStrictEqual([crashes, unknown], [0, 0])
  assert.isAtLeast(steps, 5 * scenario.messages)
  return steps
})

/** A job whose process is gone with that step; how many messages are in doubt. */
const goneAt = Effect.fnUntraced(function* (doors: Doors, scenario: Scenario, at: number, fate: "before" | "after") {
  let step = 0
  const { crashes, unknown } = yield* run(doors, scenario, () => (step++ === at ? fate : "lives"))
  assert.strictEqual(crashes, 1)
  assert.isAtMost(unknown, scenario.window)
  return unknown
})

describe("a process that is gone at each step of a replay job, in memory", () => {
  it.effect.each([false, true])("each of ten messages is replayed once or named as unknown; force: %s", (force) =>
    Effect.gen(function* () {
      const scenario = { messages: 10, window: 4, force }
      const steps = yield* counted(inMemory, scenario)
      let unknown = 0
      for (let step = 0; step < steps; step++) {
        for (const fate of fates) unknown += yield* goneAt(inMemory, scenario, step, fate)
      }
      assert.isAbove(unknown, 0)
    })
  )
})

describe.each(variants)("a process that is gone within a replay job of a thousand messages, $name", (variant) => {
  const { doors, skip } = variant
  const effect = skip ? it.effect.skip : it.effect

  for (const [part, sample] of samples.entries()) {
    effect(
      `each is replayed once or named as unknown: at ${isWhole ? "each step" : "a step"} of part ${part + 1} of ${samples.length}`,
      () =>
        Effect.gen(function* () {
          const scenario = { messages: 1_000, window: 32, force: false }
          const steps = yield* counted(doors, scenario)
          const at = (share: number) => Math.floor((steps * (part + share)) / samples.length)
          if (!isWhole) {
            yield* goneAt(doors, scenario, at(sample.share), sample.fate)
            return
          }
          for (let step = at(0); step < at(1); step++) {
            for (const fate of fates) yield* goneAt(doors, scenario, step, fate)
          }
        }),
      patience
    )
  }
})

describe.each(variants)(
  "processes that are gone one after the other, in the life of one replay job, $name",
  (variant) => {
    const { doors, skip } = variant
    const effect = skip ? it.effect.skip : it.effect

    for (const window of isWhole ? [1, 32] : [1, 8]) {
      effect(
        `before and after each of its steps: each message is replayed once or named as unknown; ${window} at once`,
        () =>
          Effect.gen(function* () {
            const scenario = { messages: isWhole ? 1_000 : 50, window, force: false }
            const [steps, crashes] = [new Set<string>(), new Set<string>()]
            const once: Fates = (step) => {
              steps.add(step)
              const fate = fates.find((fate) => !crashes.has(`${fate} ${step}`))
              if (fate !== undefined) crashes.add(`${fate} ${step}`)
              return fate ?? "lives"
            }
            // what is in doubt takes no further step: another job goes on with the rest, until one lives through them all
            let last = yield* run(doors, scenario, once)
            while (last.crashes > 0) last = yield* run(doors, scenario, once)
            assert.strictEqual(crashes.size, 2 * steps.size)
            assert.isAtLeast(steps.size, 5 * scenario.messages)
          }),
        patience
      )
    }
  }
)
