import type { LookupAddress } from "node:dns"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { afterEach, beforeEach, vi } from "vitest"
import { AddressRefused, socketLookup } from "../../layers/http/AddressPolicy.ts"
import { type LookupCallback, NameLookups } from "../../layers/http/NameLookups.ts"
import * as UpstreamHttp from "../../layers/UpstreamHttp.ts"
import { collector } from "../upstream/Collector.ts"
import { exchange, failure } from "../upstream/Exchanges.ts"
import { head, serve } from "../upstream/ScriptedServer.ts"

const at = (address: string): ReadonlyArray<LookupAddress> => [{ address, family: 4 }]
const failed = (code: string): NodeJS.ErrnoException => Object.assign(new Error(code), { code })

/** A resolver that answers when the test says so, and what it was asked for. */
const scripted = () => {
  const asked: Array<string> = []
  const running = new Map<string, LookupCallback>()
  const names = new NameLookups(
    (host, told) => {
      asked.push(host)
      running.set(host, told)
    },
    () => Date.now()
  )
  const told: Array<string> = []
  const ask = (host: string) =>
    names.lookUp(host, (error, found) => {
      told.push(`${host} ${error?.code ?? found.map(({ address }) => address).join()}`)
    })
  const answers = (host: string, address: string) => running.get(host)?.(null, at(address))
  const fails = (host: string, code: string) => running.get(host)?.(failed(code), [])
  const pass = (ms: number) => {
    vi.advanceTimersByTime(ms)
    return told.splice(0)
  }
  return { asked, ask, answers, fails, pass }
}

describe("NameLookups", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setImmediate", "clearImmediate", "Date"] })
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  it("keeps a look-up that began after another one of the same host was given up twice", () => {
    const { answers, ask, pass } = scripted()
    for (const busy of ["x", "y"]) ask(busy)
    const leave = ask("a")
    leave()
    ask("a")
    leave()
    ask("a")
    answers("x", "3.3.3.3")
    answers("y", "4.4.4.4")
    pass(0)
    answers("a", "1.1.1.1")
    assert.deepStrictEqual(pass(0), ["a 1.1.1.1", "a 1.1.1.1"])
  })

  it("asks once for a host, whoever asks, and again when the answer is old", () => {
    const { answers, ask, asked, pass } = scripted()
    for (let i = 0; i < 50; i++) ask("a")
    answers("a", "1.1.1.1")
    assert.lengthOf(pass(0), 50)
    ask("a")
    assert.deepStrictEqual(pass(9_999), ["a 1.1.1.1"])
    assert.deepStrictEqual(asked, ["a"])
    pass(1)
    ask("a")
    answers("a", "2.2.2.2")
    assert.deepStrictEqual(pass(0), ["a 2.2.2.2"])
    assert.deepStrictEqual(asked, ["a", "a"])
  })

  it("remembers a failure for a second, and a slow one for longer", () => {
    const { ask, asked, fails, pass } = scripted()
    ask("a")
    fails("a", "ENOTFOUND")
    ask("a")
    assert.deepStrictEqual(pass(999), ["a ENOTFOUND", "a ENOTFOUND"])
    pass(1)
    ask("a")
    pass(20_000)
    fails("a", "EAI_AGAIN")
    ask("a")
    assert.deepStrictEqual(pass(4_999), ["a EAI_AGAIN", "a EAI_AGAIN"])
    assert.lengthOf(asked, 2)
    pass(1)
    ask("a")
    assert.lengthOf(asked, 3)
  })

  it("leaves a thread to others however many names are silent, and a place to names that were answered before", () => {
    const { answers, ask, asked, fails, pass } = scripted()
    ask("model")
    answers("model", "1.1.1.1")
    pass(10_000)
    for (let i = 0; i < 20; i++) ask(`silent-${i}`)
    assert.deepStrictEqual(asked.splice(0), ["model", "silent-0", "silent-1"])
    ask("model")
    assert.deepStrictEqual(asked.splice(0), ["model"])
    answers("model", "1.1.1.2")
    assert.deepStrictEqual(pass(20_000), ["model 1.1.1.2"])
    // those that failed slowly take turns in one place, and the other one is for names that nobody asked for yet
    fails("silent-0", "EAI_AGAIN")
    fails("silent-1", "EAI_AGAIN")
    assert.deepStrictEqual(asked.splice(0), ["silent-2", "silent-3"])
    pass(5_000)
    ask("silent-0")
    ask("silent-1")
    for (let i = 2; i < 20; i++) answers(`silent-${i}`, "1.1.1.3")
    assert.include(asked, "silent-0")
    assert.notInclude(asked, "silent-1")
    ask("new")
    assert.include(asked, "new")
  })

  it("an old answer stands in for a name server that is silent, or says to try again", () => {
    const { answers, ask, asked, fails, pass } = scripted()
    ask("a")
    answers("a", "1.1.1.1")
    pass(10_000)
    ask("a")
    assert.deepStrictEqual(pass(499), [])
    assert.deepStrictEqual(pass(1), ["a 1.1.1.1"])
    ask("a")
    assert.deepStrictEqual(pass(0), ["a 1.1.1.1"])
    fails("a", "EAI_AGAIN")
    ask("a")
    assert.deepStrictEqual(pass(0), ["a 1.1.1.1"])
    assert.lengthOf(asked, 2)
    pass(600_000)
    ask("a")
    fails("a", "EAI_AGAIN")
    assert.deepStrictEqual(pass(0), ["a EAI_AGAIN"])
  })

  it("does not ask for a name that nobody waits for any more", () => {
    const { answers, ask, asked, pass } = scripted()
    ask("silent-0")
    ask("silent-1")
    const leave = ask("given-up")
    ask("wanted")
    leave()
    answers("silent-0", "1.1.1.1")
    assert.deepStrictEqual(pass(0), ["silent-0 1.1.1.1"])
    assert.deepStrictEqual(asked, ["silent-0", "silent-1", "wanted"])
  })

  it("a remembered address is judged by whoever asks", () => {
    const names = new NameLookups((_, told) => told(null, at("127.0.0.1")))
    const outcomes: Array<unknown> = []
    for (const rule of ["allow", "refuse", "allow", "refuse"] as const) {
      socketLookup(names, rule).lookup("host", { all: true }, (error, found) => outcomes.push(error ?? found))
      vi.advanceTimersByTime(1)
    }
    assert.deepStrictEqual(
      outcomes.map((outcome) => outcome instanceof AddressRefused),
      [false, true, false, true]
    )
  })
})

describe("UpstreamHttp", () => {
  it.live(
    "a host whose name server is silent delays no other host, and its own exchanges end at their deadline",
    () => {
      const names = new NameLookups((host, told) => {
        if (host.endsWith("model.test")) setImmediate(told, null, at("127.0.0.1"))
      })
      return Effect.gen(function* () {
        const { origin } = yield* serve(async (peer) => {
          await peer.request()
          await peer.write(head(200, ["content-length", "0", "connection", "close"]))
          peer.end()
        })
        const { port } = new URL(origin)
        const ask = (host: string) => {
          const answered = collector()
          return Effect.map(exchange(`http://${host}:${port}`, answered), () => answered.status)
        }
        assert.strictEqual(yield* ask("model.test"), 200)
        const silent = yield* Effect.forEach(
          Array.from({ length: 16 }, (_, n) => failure(`http://silent-${n}.test`, { headersWithinMs: 300 })),
          (exchange) => Effect.forkChild(exchange, { startImmediately: true })
        )
        assert.strictEqual(yield* ask("model.test"), 200)
        for (const fiber of silent) assert.deepStrictEqual(yield* Fiber.join(fiber), ["connect", "timeout"])
      }).pipe(Effect.scoped, Effect.provide(UpstreamHttp.layerWith({ nameLookups: names })))
    }
  )
})
