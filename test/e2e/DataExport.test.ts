import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import * as RunningGateway from "../RunningGateway.ts"
import * as TemporaryData from "../TemporaryData.ts"
import * as TemporaryDatabase from "../TemporaryDatabase.ts"
import { chat } from "./Calls.ts"
import * as Deployment from "./Deployment.ts"

const exportTo = (path: string, url: string) =>
  Effect.promise(async () => {
    const { exited, output } = RunningGateway.command(["data", "export", "--data", path, "--to", url], {})
    return { code: await exited, output: output().trim() }
  })

/** Without the time until which a program has summed up what keys spend: each goes on from where it starts. */
const state = (gateway: RunningGateway.RunningGateway) =>
  Effect.promise(() =>
    Promise.all(
      ["/keys", "/projects", "/family-b-routes", "/usage/summary", "/audit-events"].map(async (path) =>
        JSON.parse(JSON.stringify(await gateway.operate("GET", path)), (name, value: unknown) =>
          name === "spend_until" ? undefined : value
        )
      )
    )
  )

describe.skipIf(!Deployment.available)("data export", () => {
  it.live(
    "moves the embedded database to PostgreSQL, where the program goes on with the same data",
    () =>
      Effect.gen(function* () {
        const path = yield* TemporaryData.path
        const deployment = yield* Deployment.make()
        const url = Redacted.value(deployment.database)
        const absent = yield* exportTo(path, url)
        assert.deepStrictEqual(
          [absent.code, absent.output],
          [78, `The directory ${path} contains no embedded database.`]
        )

        const embedded = yield* RunningGateway.start({ adminToken: deployment.adminToken, flags: ["--data", path] })
        const policy = { daily_budget_usd: 1, description: 'a "quoted" ☃\nline' }
        const key = yield* Effect.promise(() =>
          RunningGateway.createKey(embedded, { policy: { daily_budget_usd: policy.daily_budget_usd } })
        )
        yield* Effect.promise(() => embedded.operate("POST", "/projects", { name: policy.description.slice(0, 12) }))
        yield* Effect.promise(() => embedded.operate("PATCH", "/family-b-routes/messages/config", { timeout_ms: 4321 }))
        for (let number = 0; number < 3; number++) assert.strictEqual((yield* chat(embedded, key.raw)).status, 200)
        const running = yield* exportTo(path, url)
        assert.deepStrictEqual([running.code, /is in use by another svc-runtime/.test(running.output)], [1, true])
        embedded.signal("SIGTERM")
        yield* Effect.promise(() => embedded.exited)

        const exported = yield* exportTo(path, url)
        assert.strictEqual(exported.code, 0, exported.output)
        assert.match(exported.output, /^api_keys +1$/m)
        assert.match(exported.output, /^usage_events +3$/m)

        const again = yield* exportTo(path, url)
        assert.strictEqual(again.code, 1)
        assert.match(again.output, /Nothing was exported: the PostgreSQL database is not empty/)

        const local = yield* RunningGateway.start({ adminToken: deployment.adminToken, flags: ["--data", path] })
        const expected = yield* state(local)
        const moved = yield* deployment.start()
        assert.deepStrictEqual(yield* state(moved), expected)
        assert.strictEqual((yield* chat(moved, key.raw)).status, 200)
        // Sequences continue after the exported rows.
        yield* Effect.promise(() => moved.operate("POST", "/projects", { name: "later" }))
        const verify = RunningGateway.command(["audit", "verify"], deployment.environment)
        assert.strictEqual(yield* Effect.promise(() => verify.exited), 0, verify.output())
      }),
    240_000
  )

  it.live("says why it cannot export, without the password", () =>
    Effect.gen(function* () {
      const path = yield* TemporaryData.path
      const url = new URL(TemporaryDatabase.server ?? "")
      url.pathname = "/svc_no_such_database"
      url.password = "canary"
      const { output } = yield* exportTo(path, url.href)
      assert.notInclude(output, "canary")
    })
  )
})
