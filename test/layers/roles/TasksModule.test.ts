import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Console, Effect } from "effect"
import { TestClock } from "effect/testing"
import * as TasksModule from "../../../layers/roles/TasksModule.ts"
import * as TemporaryData from "../../TemporaryData.ts"

const written = Effect.fnUntraced(function* (text: string) {
  const path = join(yield* TemporaryData.path, "tasks.mjs")
  writeFileSync(path, text)
  return path
})

describe("a tasks module", () => {
  it.effect.each([
    ["null", "throw null", /cannot be loaded: it throws null$/],
    ["an object", "throw { reason: 'no ink' }", /it throws \{ reason: 'no ink' \}$/],
    ["an error without a stack", "throw Object.assign(new Error('no ink'), { stack: 5 })", /Error: no ink$/],
    [
      "an error of another machine",
      "throw Object.assign(new Error('no ink'), { stack: 'at file://host/x.js:1:2\\n at file:///a%2Fb.js:1:2' })",
      /Error: no ink$/
    ]
  ] as const)("may throw %s", ([, text, sentence]) =>
    Effect.gen(function* () {
      const { message } = yield* Effect.flip(TasksModule.load(yield* written(text)))
      assert.match(message, sentence)
    })
  )

  it.effect("that awaits for long says so", () =>
    Effect.gen(function* () {
      const path = yield* written("await new Promise(() => {})")
      const lines: Array<string> = []
      const console: Console.Console = { ...globalThis.console, error: (line: string) => lines.push(line) }
      yield* Effect.forkChild(Effect.provideService(TasksModule.load(path), Console.Console, console))
      yield* TestClock.adjust("10 seconds")
      assert.include(lines.join(), `The tasks module ${path} has been loading for 10 seconds`)
    })
  )
})
