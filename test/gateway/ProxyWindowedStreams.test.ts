import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import * as Egress from "../ScriptedEgress.ts"
import * as Streams from "./GuardedStreams.ts"
import * as Proxy from "./Proxy.ts"

layer(Proxy.database)("ProxyApp, HTTP guardrails on windows of streams", (it) => {
  const window = { mode: "window", windowChars: 64 } as const
  const piece = (letter: string) => letter.repeat(32)

  it.effect.each(Streams.families)("%s: each window is judged with the quarter before it, in order", ([, family]) =>
    Effect.gen(function* () {
      const events = family.events(..."abcde".split("").map(piece))
      const { gateway, request } = yield* Streams.guarded(
        family,
        { upstream: Streams.paced(events), egress: Egress.says({ action: "allow" }) },
        window
      )
      const wire = yield* gateway.ask(request)
      assert.deepStrictEqual([wire.status, wire.ending, wire.text], [200, "whole", events.join("")])
      const common = { lane: family.lane, place: "message content" }
      assert.deepStrictEqual(gateway.asked.map(Streams.textsOf), [
        [{ ...common, context: "", text: piece("a") + piece("b") }],
        [{ ...common, context: "b".repeat(16), text: piece("c") + piece("d") }],
        [{ ...common, context: "d".repeat(16), text: piece("e") }]
      ])
      const [record] = yield* gateway.records
      assert.deepInclude(record, { usage_source: "reported", error_code: null })
      assert.deepStrictEqual(
        record?.guardrails?.map(({ action, metadata, mode }) => [mode, action, metadata]),
        [["during_call", "allow", { calls: 3, longest_call_ms: 0, held_characters: 64, first_text_delay_ms: 0 }]]
      )
    })
  )

  it.effect.each(
    Streams.families.flatMap(([name, family]) =>
      (
        [
          ["first", 0, ""],
          ["middle", 2, "ab"],
          ["last", 4, "abcd"]
        ] as const
      ).map(([which, at, before]) => [name, which, family, at, before] as const)
    )
  )("%s: a block of the %s window ends the stream after what was allowed", ([, , family, at, before]) =>
    Effect.gen(function* () {
      const pieces = "abcde"
        .split("")
        .map(piece)
        .with(at, `${piece("x").slice(3)}bad`)
      const events = family.events(...pieces)
      const upstream: Array<string> = []
      const { gateway, request } = yield* Streams.guarded(
        family,
        { upstream: Streams.paced(events, upstream), egress: Streams.blockingBad },
        window
      )
      const wire = yield* gateway.ask(request)
      const allowed = before.split("").map(piece).join("")
      assert.deepStrictEqual([wire.status, wire.ending, family.read(wire.text)], [200, "whole", allowed])
      assert.strictEqual(Streams.errorCodeOf(wire.text), "guardrail_blocked")
      assert.isTrue(events.join("").startsWith(wire.text.slice(0, wire.text.lastIndexOf(errorStart(family)))))
      const [record] = yield* gateway.records
      assert.deepInclude(record, { error_code: "guardrail_blocked" })
      const sent = record?.output_tokens ?? 0
      if (allowed !== "") assert.isAtLeast(sent, allowed.length / 4)
      assert.isBelow(sent, (allowed.length + 64) / 4)
      assert.deepInclude(record?.guardrails?.[0], { action: "block" })
      assert.isBelow(upstream.length, events.length)
    })
  )

  it.effect("text goes out as soon as its window was allowed, and the upstream waits for the call", () =>
    Effect.gen(function* () {
      const calls: Array<Deferred.Deferred<void>> = []
      const began: Array<Deferred.Deferred<void>> = []
      for (const _ of "123") {
        calls.push(yield* Deferred.make<void>())
        began.push(yield* Deferred.make<void>())
      }
      let call = 0
      const events = Streams.chat.events(..."abcde".split("").map(piece))
      const upstream: Array<string> = []
      const { gateway, request } = yield* Streams.guarded(
        Streams.chat,
        {
          upstream: Streams.paced(events, upstream),
          egress: (asked) =>
            Effect.gen(function* () {
              const at = call++
              yield* Deferred.succeed(began[at] ?? (yield* Deferred.make<void>()), undefined)
              yield* Deferred.await(calls[at] ?? (yield* Deferred.make<void>()))
              return yield* Egress.says({ action: "allow" })(asked)
            })
        },
        window
      )
      const asking = yield* Effect.forkChild(gateway.ask(request))
      const written = () => Streams.chat.read(gateway.journal.map((line) => line.replace(/^write /, "")).join(""))
      const sentUpstream = [3, 5, 7]
      for (const [at, expected] of ["", "ab", "abcd"].entries()) {
        yield* Deferred.await(began[at] ?? (yield* Deferred.make<void>()))
        assert.strictEqual(written(), expected.split("").map(piece).join(""))
        assert.strictEqual(upstream.length, sentUpstream[at])
        yield* Deferred.succeed(calls[at] ?? (yield* Deferred.make<void>()), undefined)
      }
      assert.strictEqual((yield* Fiber.join(asking)).text, events.join(""))
    })
  )

  it.effect("a slow client holds the upstream back, and gets the whole stream", () =>
    Effect.gen(function* () {
      const events = Streams.messages.events(..."abcdefgh".split("").map(piece))
      const { gateway, request } = yield* Streams.guarded(
        Streams.messages,
        { upstream: Streams.paced(events), egress: Egress.says({ action: "allow" }) },
        window
      )
      const wire = yield* gateway.ask({ ...request, slow: true })
      assert.deepStrictEqual([wire.ending, wire.text], ["whole", events.join("")])
    })
  )

  it.effect("a long piece is judged in windows by one call, and a modified window is an invalid reply", () =>
    Effect.gen(function* () {
      const text = "0123456789".repeat(20)
      const events = Streams.chat.events(text)
      const allowing = yield* Streams.guarded(
        Streams.chat,
        { upstream: Streams.paced(events), egress: Egress.says({ action: "warn", reason: "long" }) },
        window
      )
      assert.strictEqual((yield* allowing.gateway.ask(allowing.request)).text, events.join(""))
      const judged = allowing.gateway.asked.map(Streams.textsOf)
      assert.deepStrictEqual(
        judged.map((texts) => texts.map(({ text }) => text.length)),
        [[64, 64, 64], [8]]
      )
      const [record] = yield* allowing.gateway.records
      assert.deepInclude(record?.guardrails?.[0], { action: "warn", reason: "long" })

      const modifying = yield* Streams.guarded(
        Streams.chat,
        {
          upstream: Streams.paced(events),
          egress: Streams.judging((texts) => ({ action: "modify", response: { texts } }))
        },
        window
      )
      const wire = yield* modifying.gateway.ask(modifying.request)
      assert.strictEqual(Streams.errorCodeOf(wire.text), "invalid_guardrail_request")
      assert.strictEqual(Streams.chat.read(wire.text), "")
    })
  )

  it.effect("copies of judged texts need no call", () =>
    Effect.gen(function* () {
      const events = Streams.responseEvents(piece("a"), piece("b"), "c")
      const { gateway, request } = yield* Streams.guarded(
        { ...Streams.chat, target: "/v1/responses" },
        { upstream: Streams.paced(events), egress: Egress.says({ action: "allow" }) },
        window
      )
      assert.strictEqual((yield* gateway.ask(request)).text, events.join(""))
      assert.deepStrictEqual(
        gateway.asked.flatMap(Streams.textsOf).map(({ text }) => text),
        [piece("a") + piece("b"), "c"]
      )
    })
  )
})

const errorStart = (family: Streams.Family) => (family === Streams.messages ? "event: error" : 'data: {"error"')
