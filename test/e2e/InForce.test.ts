import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import * as RunningGateway from "../RunningGateway.ts"
import * as TemporaryDatabase from "../TemporaryDatabase.ts"
import { type Answer, chat, codeOf } from "./Calls.ts"

/** The first request behind each answer of the operator API, in one process, without a pause between them. */
const obeyed = (environment: Readonly<Record<string, string>>) =>
  Effect.gen(function* () {
    const gateway = yield* RunningGateway.start({ environment })
    const operate = (method: string, path: string, body?: unknown) =>
      Effect.promise(() => gateway.operate(method, path, body))
    const key = yield* Effect.promise(() => RunningGateway.createKey(gateway))
    const next = Effect.map(chat(gateway, key.raw), (answer: Answer) => (answer.status === 200 ? 200 : codeOf(answer)))
    const found: Array<unknown> = []
    for (let round = 0; round < 10; round++) {
      yield* operate("POST", "/family-a-routes/chat-completions/disable")
      found.push(yield* next)
      yield* operate("POST", "/family-a-routes/chat-completions/enable")
      found.push(yield* next)
      yield* operate("PATCH", `/keys/${key.id}`, { policy: { deny: true } })
      found.push(yield* next)
      yield* operate("PATCH", `/keys/${key.id}`, { policy: null })
      found.push(yield* next)
    }
    assert.deepStrictEqual(
      found,
      Array.from({ length: 10 }, () => ["disabled_route", 200, "policy_denied", 200]).flat()
    )
  })

describe("where one process is everything, an operator's answer means that the change is in force", () => {
  it.live("on the embedded database", () => Effect.scoped(obeyed({})))

  it.live.skipIf(TemporaryDatabase.server === null)("on a server", () =>
    Effect.gen(function* () {
      const database = yield* TemporaryDatabase.make
      yield* obeyed({ DATABASE_URL: Redacted.value(database) })
    }).pipe(Effect.scoped)
  )
})
