import { assert, describe, layer, type Vitest } from "@effect/vitest"
import { Effect, type Layer, type Schema } from "effect"
import { Redis } from "../../../src/services/Redis.ts"
import * as Proxy from "../../gateway/Proxy.ts"
import * as ScriptedUpstream from "../../gateway/ScriptedUpstream.ts"
import * as TemporaryDatabase from "../../TemporaryDatabase.ts"
import * as TemporaryPrefix from "../../TemporaryPrefix.ts"
import * as Listener from "../Listener.ts"
import { admin, at, idOf, ok } from "../Listener.ts"

/** The control listener on a PostgreSQL and a Redis, beside which tests start gateways. */
const servers = Listener.layer(TemporaryDatabase.layer, { redis: TemporaryPrefix.layer })

type Services = Layer.Success<typeof servers>

export const suite = (name: string, tests: (it: Vitest.MethodsNonLive<Services>) => void) =>
  describe.skipIf(TemporaryDatabase.server === null || TemporaryPrefix.server === null)("on servers", () =>
    layer(servers, { excludeTestServices: true })(name, tests)
  )

/** Ten tokens, of which the price makes ten cents. */
export const answered = ScriptedUpstream.json({ usage: { prompt_tokens: 4, completion_tokens: 6, total_tokens: 10 } })
export const model = "priced"

export const priced = ok("PUT", `${admin}/model-prices/${model}`, {
  body: { input_usd_per_million: 10_000, output_usd_per_million: 10_000 }
})

/** A gateway on the same PostgreSQL and Redis. */
export const gateway = (upstream: ScriptedUpstream.Script = answered) =>
  Effect.flatMap(Redis, (redis) => Proxy.restarted({ redis, upstream }))

export interface HeldKey {
  readonly id: string
  readonly raw: string
}

export const newKey = (settings: object) =>
  Effect.map(ok("POST", `${admin}/keys`, { body: { owner_type: "individual", ...settings } }), (json): HeldKey => {
    const raw = at(json, "raw_key")
    assert(typeof raw === "string")
    return { id: idOf(json, "key"), raw }
  })

export const chatOf = ({ raw }: HeldKey, tokens = 6, target = Proxy.chat) => ({
  target,
  headers: ["authorization", `Bearer ${raw}`],
  body: { model, max_tokens: tokens, messages: [{ role: "user", content: "hi" }] }
})

/** The limits that the control API shows. */
export const limitsOf = (query: string) => Effect.map(ok("GET", `${admin}/limits/state?${query}`), listed)

export const listed = (json: Schema.Json | undefined): ReadonlyArray<Schema.Json> => {
  const limits = at(json, "limits")
  assert(Array.isArray(limits))
  return limits
}

export const meter = (limits: ReadonlyArray<Schema.Json>, name: string) => {
  const found = limits.find((one) => at(one, "meter") === name)
  assert(found !== undefined, `${name} in ${JSON.stringify(limits)}`)
  return found
}
