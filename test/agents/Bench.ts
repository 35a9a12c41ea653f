import { randomUUID } from "node:crypto"
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { Context, Effect, Layer, Option, Schema } from "effect"
import { eventually } from "../Eventually.ts"
import { call } from "../e2e/Calls.ts"
import * as GatewayOnPostgres from "../GatewayOnPostgres.ts"
import * as RunningGateway from "../RunningGateway.ts"
import * as Agents from "./Agents.ts"
import type { Json } from "./Answer.ts"
import * as FakeVendors from "./FakeVendors.ts"

export interface Key {
  readonly id: string
  readonly raw: string
}

/** A request as the gateway's log has it. */
export interface Logged {
  readonly path: string
  readonly status: number
  readonly code: string | undefined
}

/** A gateway with its default settings in front of the fake vendors, and a home for the agents. */
export class Bench extends Context.Service<
  Bench,
  {
    readonly gateway: RunningGateway.RunningGateway
    readonly vendors: FakeVendors.FakeVendors
    readonly home: Agents.Home
    /** A key as the gateway guide has operators create it for an agent. */
    readonly agentKey: (policy?: Json) => Effect.Effect<Key>
    /** The path of a file in the agent's project. */
    readonly file: (name: string, content: string | Uint8Array) => Effect.Effect<string>
    /** The agents' requests for answers that the gateway has logged since the script began, oldest first. */
    readonly logged: Effect.Effect<ReadonlyArray<Logged>>
    /** The usage records of a key, oldest first, once there are `count`. */
    readonly recorded: (key: Key, count: number) => Effect.Effect<ReadonlyArray<Recorded>>
    /** Begins a script of the model's. */
    readonly play: (...script: FakeVendors.Script) => Effect.Effect<void>
    /** Fails where a credential of a client's is in any request that reached the vendors. */
    readonly nothingLeaked: (...secrets: ReadonlyArray<string>) => void
  }
>()("test/agents/Bench") {
  static readonly layer = Layer.effect(
    Bench,
    Effect.gen(function* () {
      const vendors = yield* FakeVendors.serve
      const home = yield* Agents.temporaryHome
      const gateway = yield* GatewayOnPostgres.start({
        environment: { UPSTREAM_BASE_URL: vendors.origin, UPSTREAM_SERVICE_KEY: operatorsCredential }
      })
      const keys: Array<string> = []
      let scriptBegins = 0

      /** The log has its lines in order: when it has one of a request made now, it has all that came before. */
      const wholeLog = Effect.gen(function* () {
        const last = `/${randomUUID()}`
        yield* call(gateway, last, undefined)
        return yield* eventually(Effect.sync(gateway.output), (output) => output.includes(last))
      })

      return Bench.of({
        gateway,
        vendors,
        home,
        agentKey: (policy = {}) =>
          Effect.promise(async () => {
            const key = await RunningGateway.createKey(gateway, { preset: "coding_agent", policy })
            keys.push(key.raw)
            return key
          }),
        file: (name, content) =>
          Effect.promise(async () => {
            const path = join(home.project, name)
            await writeFile(path, content)
            return path
          }),
        play: (...script) =>
          Effect.map(wholeLog, ({ length }) => {
            scriptBegins = length
            vendors.play(...script)
          }),
        logged: Effect.map(wholeLog, (output) => requestsIn(output.slice(scriptBegins))),
        recorded: (key, count) =>
          eventually(
            Effect.promise(() => gateway.operate("GET", `/usage/events?key_id=${key.id}&sort_order=asc`)),
            (found) => recordsOf(found).length >= count
          ).pipe(Effect.map(recordsOf)),
        nothingLeaked: (...secrets) => {
          for (const { text } of vendors.requests()) {
            assert.include(text, operatorsCredential)
            for (const secret of [...keys, ...secrets]) assert.notInclude(text, secret)
          }
        }
      })
    })
  )
}

const operatorsCredential = "sk-of-the-operator"

const Line = Schema.fromJsonString(
  Schema.Struct({
    message: Schema.Literal("request"),
    path: Schema.Literals(["/v1/messages", "/v1/responses"]),
    status: Schema.Int,
    code: Schema.optionalKey(Schema.String)
  })
)
const decodeLine = Schema.decodeUnknownOption(Line)

const requestsIn = (log: string): ReadonlyArray<Logged> =>
  log.split("\n").flatMap((text) => {
    const line = Option.getOrUndefined(decodeLine(text))
    return line === undefined ? [] : [{ path: line.path, status: line.status, code: line.code }]
  })

const Recorded = Schema.Struct({
  status_code: Schema.Int,
  input_tokens: Schema.NullOr(Schema.Int),
  cached_input_tokens: Schema.NullOr(Schema.Int),
  cache_write_tokens: Schema.NullOr(Schema.Int),
  output_tokens: Schema.NullOr(Schema.Int)
})
export type Recorded = typeof Recorded.Type
const decodePage = Schema.decodeUnknownSync(Schema.Struct({ rows: Schema.Array(Recorded) }))
const recordsOf = (page: unknown): ReadonlyArray<Recorded> => decodePage(page).rows

/** Every object within a JSON value, in the order of the text. */
export const objectsIn = (value: unknown): ReadonlyArray<Json> => {
  if (typeof value !== "object" || value === null) return []
  const inner = Object.values(value).flatMap(objectsIn)
  return Array.isArray(value) ? inner : [Object.fromEntries(Object.entries(value)), ...inner]
}

/** A picture of one pixel. */
export const png: Uint8Array = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64"
)

/** Twenty thousand different words. */
export const longText = Array.from({ length: 20_000 }, (_, i) => `word${i}`).join(" ")
