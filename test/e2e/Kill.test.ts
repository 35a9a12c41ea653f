import { request } from "node:http"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as RunningGateway from "../RunningGateway.ts"
import * as SimulatorServer from "../upstream/SimulatorServer.ts"
import { hello } from "./Calls.ts"
import * as Deployment from "./Deployment.ts"

const rounds = 4
const inFlight = 16

/** One chat, of which `onWhole` hears in the very callback that brings the end of the answer. */
const ask = (gateway: RunningGateway.RunningGateway, key: string, id: string, stream: boolean, onWhole: () => void) =>
  new Promise<void>((over) => {
    const asked = request(`${gateway.proxy}/v1/chat/completions`, {
      method: "POST",
      agent: false,
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json", "x-request-id": id }
    })
    asked.on("error", () => over())
    asked.on("response", (response) => {
      response.on("error", () => over())
      response.on("close", () => over())
      response.on("end", () => {
        if (response.complete && response.statusCode === 200) onWhole()
      })
      response.resume()
    })
    asked.end(JSON.stringify({ model: "m", messages: hello, stream }))
  })

describe.skipIf(!Deployment.available)("kill -9 right after an answer", () => {
  it.live("what the client has had whole is on record exactly once after a restart, plain and streamed", () =>
    Effect.gen(function* () {
      const upstream = yield* SimulatorServer.serve()
      const deployment = yield* Deployment.make({
        environment: { UPSTREAM_BASE_URL: upstream.origin, UPSTREAM_SERVICE_KEY: "k" }
      })
      const whole: Array<string> = []
      let keys: ReadonlyArray<{ readonly raw: string; readonly id: string }> = []

      for (let round = 0; round < rounds; round++) {
        const gateway = yield* deployment.start()
        if (round === 0) {
          keys = yield* Effect.promise(() =>
            Promise.all(
              [{}, { policy: { daily_budget_usd: 5 } }].map((body) => RunningGateway.createKey(gateway, body))
            )
          )
        }
        // of the key with limits and of the one without, at least two are whole; the others are at all stages
        const answered = [0, 0]
        const asked = Array.from({ length: inFlight }, (_, i) =>
          ask(gateway, keys[i % 2]?.raw ?? "", `${round}-${i}`, i % 4 > 1, () => {
            whole.push(`${round}-${i}`)
            answered[i % 2] = (answered[i % 2] ?? 0) + 1
            if (answered.every((count) => count >= 2)) gateway.signal("SIGKILL")
          })
        )
        yield* Effect.promise(() => Promise.all(asked))
        assert.strictEqual(yield* Effect.promise(() => gateway.exited), "SIGKILL")
      }
      assert.isAtLeast(whole.length, rounds * 4)

      yield* deployment.start()
      const records = yield* Effect.forEach(keys, ({ id }) => deployment.recorded(id, rounds * 2))
      const ids = records.flat().map(({ request_id }) => request_id)
      assert.deepStrictEqual(
        whole.filter((id) => !ids.includes(id)),
        []
      )
      assert.strictEqual(new Set(ids).size, ids.length)
    })
  )
})
