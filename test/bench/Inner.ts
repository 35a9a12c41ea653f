import { Context, Effect, Exit, Layer, Option, Result } from "effect"
import * as RedisMemory from "../../layers/RedisMemory.ts"
import { ProxyApp } from "../../src/gateway/ProxyApp.ts"
import type { Wire } from "../../src/gateway/request/Wire.ts"
import { Guardrails } from "../../src/guardrails/Guardrails.ts"
import { StartupUpstreams } from "../../src/policy/routes/StartupUpstreams.ts"
import { GatewaySettings } from "../../src/process/GatewaySettings.ts"
import { Redis } from "../../src/services/Redis.ts"
import { fromCallbacks, Upstream } from "../../src/services/Upstream.ts"
import { usageQueue } from "../../src/state/UsageQueue.ts"
import { Vault } from "../../src/state/Vault.ts"
import * as Proxy from "../gateway/Proxy.ts"
import * as ScriptedEgress from "../ScriptedEgress.ts"
import { everythingOn } from "./Entrants.ts"
import { bodies, path, answer as text } from "./Scenario.ts"

/**
 * The gateway's own work for a request with everything on, in this process: no sockets, no servers, Redis in memory.
 * What is left varies by a few per cent from run to run, where requests per second of whole processes vary by ten.
 */
export interface Inner {
  readonly rounds: number
  readonly requestsPerRound: number
  /** Microseconds per request: of the fastest round, and of the one in the middle. */
  readonly leastMicros: number
  readonly medianMicros: number
}

const connections = 32
const requestsPerRound = 5_000
/** Until V8 has compiled what runs often. */
const warmRounds = 10

const answer = Buffer.from(text)
const answerHead = ["content-type", "application/json", "content-length", String(answer.length)]

const upstream = Layer.succeed(
  Upstream,
  fromCallbacks((_, sink, done) => {
    queueMicrotask(() => {
      sink.head(200, answerHead)
      sink.chunk(answer)
      done(Exit.void)
    })
    return () => true
  })
)

const connection = {}

const client = (credential: string, failed: () => void): Wire => ({
  method: "POST",
  target: path,
  headers: [
    ...["Host", "127.0.0.1:8080", "Connection", "keep-alive", "content-type", "application/json"],
    ...["authorization", `Bearer ${credential}`, "Content-Length", String(bodies.instant.length)]
  ],
  address: "127.0.0.1",
  connection,
  readBody: ({ lease }, done) => {
    queueMicrotask(() => {
      lease.grow(bodies.instant.length)
      done(Result.succeed(bodies.instant))
    })
  },
  streamBody: () => {
    throw new Error("the bench's bodies are read whole")
  },
  head: () => {},
  write: () => true,
  onDrain: () => {},
  end: () => true,
  onFlushed: () => {},
  abort: failed,
  respond: failed
})

export const run = (rounds: number) =>
  Effect.gen(function* () {
    const key = yield* Proxy.issueKey(everythingOn)
    const egress = ScriptedEgress.layer(undefined, [])
    const redis = Context.get(yield* Layer.build(RedisMemory.layer({ prefix: "svc-bench:" })), Redis)
    const { handleUnsafe: handle } = Context.get(
      yield* Layer.build(
        Proxy.program.pipe(
          Layer.provide([
            Layer.succeed(Redis, redis),
            upstream,
            egress,
            Vault.layer(Option.none()),
            Guardrails.layer.pipe(Layer.provide(egress)),
            Layer.succeed(GatewaySettings, Proxy.settings),
            Layer.succeed(StartupUpstreams, Proxy.upstreams)
          ])
        )
      ),
      ProxyApp
    )
    let failures = 0
    const wire = client(key.raw, () => failures++)
    const round = Effect.callback<number>((resume) => {
      let begun = 0
      let ended = 0
      const startedAt = performance.now()
      const next = () => {
        if (begun === requestsPerRound) return
        begun++
        handle(wire, () => {
          ended++
          if (ended < requestsPerRound) setImmediate(next)
          else resume(Effect.succeed(((performance.now() - startedAt) * 1_000) / requestsPerRound))
        })
      }
      for (let each = 0; each < connections; each++) next()
    })
    const micros: Array<number> = []
    for (let each = 0; each < warmRounds + rounds; each++) {
      const taken = yield* round
      if (each >= warmRounds) micros.push(taken)
      // nobody writes the records here
      yield* redis.command("DEL", redis.key(usageQueue))
    }
    if (failures > 0) return yield* Effect.die(new Error(`${failures} requests were refused`))
    micros.sort((one, other) => one - other)
    const inner: Inner = {
      rounds,
      requestsPerRound,
      leastMicros: micros[0] ?? Number.NaN,
      medianMicros: micros[micros.length >> 1] ?? Number.NaN
    }
    return inner
  }).pipe(Effect.scoped, Effect.provide(Proxy.database))
