import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import * as Egress from "../ScriptedEgress.ts"
import * as Streams from "./GuardedStreams.ts"
import * as Proxy from "./Proxy.ts"
import * as Upstream from "./ScriptedUpstream.ts"

const guard = { mandatory_guardrails: ["guard"] }

/** Without it the gateway asks for the usage itself, and hides it from the client. */
const usageToo = { stream_options: { include_usage: true } }

/** A gateway whose key has the guardrail `guard`, and a request of the family for a stream. */
const guarded = Effect.fnUntraced(function* (
  family: Streams.Family,
  options: Proxy.Options,
  entry: Parameters<typeof Streams.registered>[0] = {}
) {
  const gateway = yield* Proxy.make({ configured: Streams.registered(entry), ...options })
  const key = yield* Proxy.issueKey({}, { guardrails: guard })
  const body = { model: "m", max_tokens: 100, stream: true, ...usageToo, messages: [{ role: "user", content: "hi" }] }
  return { gateway, key, request: { target: family.target, headers: key.headers, body } }
})

layer(Proxy.database)("ProxyApp, HTTP guardrails on whole streams", (it) => {
  it.effect.each(Streams.families)(
    "%s: one call has all texts, and what is allowed arrives byte for byte",
    ([, family]) =>
      Effect.gen(function* () {
        const stream = [": hello\r\n\r\n", "id: 7\n", ...family.events("He", "llo ", "\u{1f600}")].join("")
        const { gateway, request } = yield* guarded(family, {
          upstream: Upstream.answers(200, Streams.eventStream, ...cut(stream, 7)),
          egress: Egress.says({ action: "allow", metadata: { score: 1 } })
        })
        const wire = yield* gateway.ask(request)
        assert.deepStrictEqual([wire.status, wire.ending, wire.text], [200, "whole", stream])
        assert.strictEqual(wire.header("x-svc-applied-guardrails"), "guard")
        assert.deepStrictEqual(gateway.journal.filter((line) => /^(head|write|end)/.test(line)).length, 3)
        const [asked, ...others] = gateway.asked
        assert.deepStrictEqual(others, [])
        assert.deepInclude(JSON.parse(asked?.text ?? ""), {
          guardrail: "guard",
          mode: "during_call",
          request: null,
          response: { texts: [{ lane: family.lane, place: "message content", text: "Hello \u{1f600}" }] }
        })
        const [record] = yield* gateway.records
        assert.deepInclude(record, { status_code: 200, usage_source: "reported", error_code: null })
        assert.deepStrictEqual(record?.guardrails, [
          {
            guardrail_name: "guard",
            mode: "during_call",
            action: "allow",
            failure_policy: "fail_closed",
            latency_ms: 0,
            reason: null,
            metadata: { score: 1, calls: 1, longest_call_ms: 0, held_characters: 8 }
          }
        ])
      })
  )

  it.effect.each(Streams.families)("%s: the first piece carries a new text, and the others are empty", ([, family]) =>
    Effect.gen(function* () {
      const { gateway, request } = yield* guarded(family, {
        upstream: Upstream.events(family.events("a ", "secret ", "word").join("")),
        egress: Streams.judging(([text]) => ({
          action: "modify",
          response: { texts: [{ ...text, text: text?.text.replace("secret", '"…"') }] }
        }))
      })
      const wire = yield* gateway.ask(request)
      assert.strictEqual(wire.text, family.events('a "…" word', "", "").join(""))
      const [record] = yield* gateway.records
      assert.strictEqual(record?.guardrails?.[0]?.action, "modify")
      assert.notInclude(JSON.stringify(record), "secret")
    })
  )

  it.effect("copies of a text are judged once and replaced with it", () =>
    Effect.gen(function* () {
      const { gateway, request } = yield* guarded(
        { ...Streams.chat, target: "/v1/responses" },
        {
          upstream: Upstream.events(Streams.responseEvents("one ", "two").join("")),
          egress: Streams.judging((texts) => ({
            action: "modify",
            response: { texts: texts.map(({ lane }) => ({ lane, text: "three" })) }
          }))
        }
      )
      const wire = yield* gateway.ask(request)
      assert.deepStrictEqual(gateway.asked.map(Streams.textsOf), [
        [{ lane: "output 0 part 0", place: "message content", text: "one two" }]
      ])
      const expected = Streams.responseEvents("one ", "two").join("").replaceAll("one two", "three")
      assert.strictEqual(wire.text, expected.replace('"one "', '"three"').replace('"two"', '""'))
    })
  )

  it.effect("choices and tool arguments are lanes of their own, and only the changed ones change", () =>
    Effect.gen(function* () {
      const event = (choices: ReadonlyArray<object>) => `data: ${JSON.stringify({ choices })}\n\n`
      const call = (args: string) => ({
        index: 0,
        delta: { tool_calls: [{ index: 1, function: { arguments: args } }] }
      })
      const said = (index: number, content: string) => ({ index, delta: { content } })
      const stream = (first: string, second: string) =>
        [event([said(0, "a"), said(1, first)]), event([call('{"x":')]), event([call("1}"), said(1, second)])].join("")
      const { gateway, request } = yield* guarded(Streams.chat, {
        upstream: Upstream.events(stream("b", "c")),
        egress: Egress.says({ action: "modify", response: { texts: [{ lane: "choice 1 content", text: "d" }] } })
      })
      const wire = yield* gateway.ask(request)
      assert.strictEqual(wire.text, stream("d", ""))
      assert.deepStrictEqual(gateway.asked.flatMap(Streams.textsOf), [
        { lane: "choice 0 content", place: "message content", text: "a" },
        { lane: "choice 1 content", place: "message content", text: "bc" },
        { lane: "choice 0 tool 1 arguments", place: "tool arguments", text: '{"x":1}' }
      ])
    })
  )

  it.effect.each(Streams.families)(
    "%s: of a blocked stream the client gets the error alone, and it is billed",
    ([, family]) =>
      Effect.gen(function* () {
        const { gateway, request } = yield* guarded(family, {
          upstream: Upstream.events(family.events("some ", "bad ", "words").join("")),
          egress: Egress.says({ action: "block", reason: "off topic" })
        })
        const wire = yield* gateway.ask(request)
        assert.deepStrictEqual([wire.status, wire.ending], [200, "whole"])
        assert.lengthOf(Streams.jsonOf(wire.text), 1)
        assert.strictEqual(Streams.errorCodeOf(wire.text), "guardrail_blocked")
        assert.strictEqual(wire.text.startsWith("event: error\n"), family === Streams.messages)
        const [record] = yield* gateway.records
        assert.deepInclude(record, { error_code: "guardrail_blocked", input_tokens: 20, output_tokens: 7 })
        assert.deepInclude(record?.guardrails?.[0], { action: "block", reason: "off topic" })
      })
  )

  it.effect.each([
    ["an unknown lane", { texts: [{ lane: "choice 5", text: "x" }] }],
    ["a lane twice", { texts: [1, 2].map(() => ({ lane: "choice 0 content", text: "x" })) }],
    ["no text", { texts: [{ lane: "choice 0 content" }] }],
    ["another document", { choices: [] }]
  ] as const)("a reply that changes %s is invalid", ([, response]) =>
    Effect.gen(function* () {
      const { gateway, request } = yield* guarded(Streams.chat, {
        upstream: Upstream.events(...Streams.chat.events("hello")),
        egress: Egress.says({ action: "modify", response })
      })
      const wire = yield* gateway.ask(request)
      assert.strictEqual(Streams.errorCodeOf(wire.text), "invalid_guardrail_request")
      assert.notInclude(wire.text, "hello")
    })
  )

  it.effect.each([
    ["fail_closed", "block", "guardrail_blocked"],
    ["fail_open", "modify", undefined],
    ["dry_run", "warn", undefined]
  ] as const)("a signed text is not changed; %s: %s", ([policy, action, code]) =>
    Effect.gen(function* () {
      const delta = (json: object) =>
        `data: ${JSON.stringify({ type: "content_block_delta", index: 0, delta: json })}\n\n`
      const thought =
        delta({ type: "thinking_delta", thinking: "hm" }) + delta({ type: "signature_delta", signature: "c2ln" })
      const { gateway, request } = yield* guarded(
        Streams.messages,
        {
          upstream: Upstream.events(thought),
          egress: Egress.says({ action: "modify", response: { texts: [{ lane: "block 0", text: "changed" }] } })
        },
        { policy }
      )
      const wire = yield* gateway.ask(request)
      assert.strictEqual(Streams.errorCodeOf(wire.text), code)
      if (code === undefined) assert.strictEqual(wire.text, thought)
      const [record] = yield* gateway.records
      assert.deepInclude(record?.guardrails?.[0], { action })
      assert.deepStrictEqual(record?.guardrails?.[0]?.metadata["unguarded"], ["signed text"])
    })
  )

  it.effect("the head is sent at once, and comments keep the connection alive until the stream was judged", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const goOn = yield* Deferred.make<void>()
      const events = Streams.chat.events("hello")
      const { gateway, request } = yield* guarded(Streams.chat, {
        upstream: (sink) =>
          Effect.gen(function* () {
            sink.head(200, Streams.eventStream)
            yield* Deferred.succeed(begun, undefined)
            yield* Deferred.await(goOn)
            for (const event of events) sink.chunk(Buffer.from(event))
          }),
        egress: Egress.says({ action: "allow" })
      })
      const asking = yield* Effect.forkChild(gateway.ask(request))
      yield* Deferred.await(begun)
      const seen = () => gateway.journal.filter((line) => /^(head|write)/.test(line))
      assert.deepStrictEqual(seen(), ["head 200"])
      yield* TestClock.adjust("25 seconds")
      assert.deepStrictEqual(seen(), ["head 200", "write : waiting\n\n", "write : waiting\n\n"])
      yield* Deferred.succeed(goOn, undefined)
      const wire = yield* Fiber.join(asking)
      assert.strictEqual(wire.text, `: waiting\n\n: waiting\n\n${events.join("")}`)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(seen().length, 4)
    })
  )

  it.effect("a held stream is bounded by the limit of responses and by the room that there is for bodies", () =>
    Effect.gen(function* () {
      const events = Streams.chat.events("x".repeat(2000))
      const limited = yield* guarded(Streams.chat, {
        upstream: Upstream.events(...events),
        egress: Egress.says({ action: "allow" }),
        configured: Effect.andThen(
          Streams.registered(),
          Proxy.configureRoute("chat-completions", { responseBytes: 1000 })
        )
      })
      const cutOff = yield* limited.gateway.ask(limited.request)
      assert.strictEqual(Streams.errorCodeOf(cutOff.text), "response_body_too_large")
      assert.lengthOf(Streams.jsonOf(cutOff.text), 1)
      const crowded = yield* guarded(Streams.chat, {
        upstream: Upstream.events(...events),
        egress: Egress.says({ action: "allow" }),
        settings: { maxInflightBufferBytes: 1_000_000 }
      })
      const refused = yield* crowded.gateway.ask(crowded.request)
      assert.strictEqual(refused.status, 503)
    })
  )

  it.effect("content that holds no text is left to the failure policy", () =>
    Effect.gen(function* () {
      const events = Streams.chat.events("hello")
      const scored = { choices: [{ index: 0, delta: { content: "x" }, logprobs: { content: [{ token: "x" }] } }] }
      const stream = `data: ${JSON.stringify(scored)}\n\n${events.join("")}`
      for (const mode of ["buffer", "window"] as const) {
        for (const [policy, code] of [
          ["fail_closed", "guardrail_unavailable"],
          ["fail_open", undefined]
        ] as const) {
          const { gateway, request } = yield* guarded(
            Streams.chat,
            { upstream: Upstream.events(stream), egress: Egress.says({ action: "allow" }) },
            { mode, policy }
          )
          const wire = yield* gateway.ask(request)
          assert.strictEqual(Streams.errorCodeOf(wire.text), code)
          if (code === undefined) assert.strictEqual(wire.text, stream)
          const [record] = yield* gateway.records
          assert.deepInclude(record?.guardrails?.[0]?.metadata, { unguarded: ["token probabilities"] })
          assert.strictEqual(record?.guardrails?.[0]?.reason, "cannot read: token probabilities")
        }
      }
    })
  )

  it.effect("a stream without text needs no call, and data that is no JSON is a text", () =>
    Effect.gen(function* () {
      const ask = Effect.fnUntraced(function* (stream: string) {
        const { gateway, request } = yield* guarded(Streams.chat, {
          upstream: Upstream.events(stream),
          egress: Egress.says({ action: "allow" })
        })
        assert.strictEqual((yield* gateway.ask(request)).text, stream)
        return gateway.asked.flatMap(Streams.textsOf).map(({ text }) => text)
      })
      assert.deepStrictEqual(yield* ask("data: [DONE]\n\n"), [])
      assert.deepStrictEqual(yield* ask(": a comment\ndata: no JSON\n\ndata: cut o"), ["a comment", "no JSON", "cut o"])
    })
  )
})

layer(Proxy.database)("ProxyApp, HTTP guardrails on windows of streams", (it) => {
  const window = { mode: "window", windowChars: 64 } as const
  const piece = (letter: string) => letter.repeat(32)

  it.effect.each(Streams.families)("%s: each window is judged with the quarter before it, in order", ([, family]) =>
    Effect.gen(function* () {
      const events = family.events(..."abcde".split("").map(piece))
      const { gateway, request } = yield* guarded(
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
        [["during_call", "allow", { calls: 3, longest_call_ms: 0, held_characters: 64 }]]
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
      const { gateway, request } = yield* guarded(
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
      const { gateway, request } = yield* guarded(
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
      const { gateway, request } = yield* guarded(
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
      const allowing = yield* guarded(
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

      const modifying = yield* guarded(
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
      const { gateway, request } = yield* guarded(
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

layer(Proxy.database)("ProxyApp, HTTP guardrails on streams that go wrong", (it) => {
  const modes = [
    ["buffer", 64],
    ["window", 64]
  ] as const

  it.effect.each(modes)(
    "%s: a guardrail that fails: closed ends the stream, open and dry run pass and note it",
    ([mode]) =>
      Effect.gen(function* () {
        const events = Streams.messages.events("hello")
        const scripts: ReadonlyArray<readonly [Egress.Script | undefined, string]> = [
          [undefined, "guardrail_unavailable"],
          [Egress.says({ action: "allow" }, 500), "guardrail_unavailable"],
          [Egress.says({ action: "shrug" }), "invalid_guardrail_request"]
        ]
        for (const [egress, code] of scripts) {
          for (const policy of ["fail_closed", "fail_open", "dry_run"]) {
            const { gateway, request } = yield* guarded(
              Streams.messages,
              { upstream: Streams.paced(events), ...(egress !== undefined && { egress }) },
              { mode, policy }
            )
            const wire = yield* gateway.ask(request)
            const closed = policy === "fail_closed"
            assert.strictEqual(wire.status, 200)
            if (closed) {
              assert.strictEqual(Streams.errorCodeOf(wire.text), code)
              assert.strictEqual(Streams.messages.read(wire.text), "")
            } else assert.strictEqual(wire.text, events.join(""))
            const [record] = yield* gateway.records
            assert.deepInclude(record?.guardrails?.[0], { action: closed ? "block" : "warn", reason: code })
          }
        }
      })
  )

  it.effect.each(modes)("%s: a dry run notes what it would have done", ([mode]) =>
    Effect.gen(function* () {
      const events = Streams.chat.events("bad")
      const { gateway, request } = yield* guarded(
        Streams.chat,
        { upstream: Streams.paced(events), egress: Streams.blockingBad },
        { mode, policy: "dry_run" }
      )
      assert.strictEqual((yield* gateway.ask(request)).text, events.join(""))
      const [record] = yield* gateway.records
      assert.deepInclude(record?.guardrails?.[0], { action: "warn" })
      assert.strictEqual(record?.guardrails?.[0]?.metadata["dry_run_action"], "block")
    })
  )

  it.effect.each(modes)("%s: each call has the guardrail's timeout", ([mode, windowChars]) =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const { gateway, request } = yield* guarded(
        Streams.chat,
        {
          upstream: Streams.paced(Streams.chat.events("hello")),
          egress: () => Effect.andThen(Deferred.succeed(begun, undefined), Effect.never)
        },
        { mode, windowChars }
      )
      const asking = yield* Effect.forkChild(gateway.ask(request))
      yield* Deferred.await(begun)
      yield* TestClock.adjust("1500 millis")
      const wire = yield* Fiber.join(asking)
      assert.strictEqual(Streams.errorCodeOf(wire.text), "guardrail_unavailable")
      const [record] = yield* gateway.records
      assert.deepInclude(record?.guardrails?.[0], { action: "block", latency_ms: 1500 })
      assert.deepInclude(record?.guardrails?.[0]?.metadata, { calls: 1, longest_call_ms: 1500 })
    })
  )

  it.effect.each(modes)(
    "%s: a client that leaves while a call runs cancels it, and what was produced is billed",
    ([mode, windowChars]) =>
      Effect.gen(function* () {
        const begun = yield* Deferred.make<void>()
        const cancelled = yield* Deferred.make<void>()
        const { gateway, request } = yield* guarded(
          Streams.chat,
          {
            upstream: Streams.paced(Streams.chat.events("x".repeat(80), "hello")),
            egress: () =>
              Deferred.succeed(begun, undefined).pipe(
                Effect.andThen(Effect.never),
                Effect.onInterrupt(() => Deferred.succeed(cancelled, undefined))
              )
          },
          { mode, windowChars }
        )
        const asking = yield* Effect.forkChild(gateway.ask(request))
        yield* Deferred.await(begun)
        yield* Fiber.interrupt(asking)
        yield* Deferred.await(cancelled)
        assert.notInclude(gateway.journal.join(""), "xxx")
        const [record] = yield* gateway.records
        assert.deepInclude(record?.guardrails?.[0], { action: "warn", reason: "not_judged" })
        assert.deepInclude(record, { usage_source: "estimated", error_code: null })
        assert.strictEqual(record?.output_tokens, mode === "buffer" ? 22 : 3)
      })
  )

  it.effect("window: an upstream that fails while a call runs ends the stream without the waiting text", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const cancelled = yield* Deferred.make<void>()
      const { gateway, request } = yield* guarded(
        Streams.chat,
        {
          upstream: Upstream.fails("body", "reset", (sink) =>
            Effect.gen(function* () {
              sink.head(200, Streams.eventStream)
              for (const event of Streams.chat.events("x".repeat(80)).slice(0, 2)) sink.chunk(Buffer.from(event))
              yield* Deferred.await(begun)
            })
          ),
          egress: () =>
            Deferred.succeed(begun, undefined).pipe(
              Effect.andThen(Effect.never),
              Effect.onInterrupt(() => Deferred.succeed(cancelled, undefined))
            )
        },
        { mode: "window", windowChars: 64 }
      )
      const wire = yield* gateway.ask(request)
      yield* Deferred.await(cancelled)
      assert.deepStrictEqual([wire.status, wire.ending], [200, "cut"])
      assert.notInclude(wire.text, "xxx")
      const [record] = yield* gateway.records
      assert.deepInclude(record, { error_code: "upstream_connection" })
    })
  )

  it.effect("buffer: an upstream that fails before the end is billed, and nothing of the stream is sent", () =>
    Effect.gen(function* () {
      const [start = "", text = ""] = Streams.messages.events("hello")
      const { gateway, request } = yield* guarded(Streams.messages, {
        upstream: Upstream.fails("body", "reset", Upstream.events(start, text)),
        egress: Egress.says({ action: "allow" })
      })
      const wire = yield* gateway.ask(request)
      assert.deepStrictEqual([wire.status, wire.ending, wire.text], [200, "cut", ""])
      assert.lengthOf(gateway.asked, 0)
      const [record] = yield* gateway.records
      assert.deepInclude(record, { error_code: "upstream_connection", input_tokens: 20 })
    })
  )

  it.effect("a stream that lasts too long is cut while the guardrail judges it", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const gateway = yield* Proxy.make({
        configured: Streams.registered(),
        upstream: Streams.paced(Streams.chat.events("hello")),
        egress: () => Effect.andThen(Deferred.succeed(begun, undefined), Effect.never)
      })
      const key = yield* Proxy.issueKey({ max_stream_duration_seconds: 1 }, { guardrails: guard })
      const asking = yield* Effect.forkChild(
        gateway.ask({ target: Proxy.chat, headers: key.headers, body: { model: "m", stream: true } })
      )
      yield* Deferred.await(begun)
      yield* TestClock.adjust("1 second")
      const wire = yield* Fiber.join(asking)
      assert.strictEqual(Streams.errorCodeOf(wire.text), "response_body_too_large")
      assert.notInclude(wire.text, "hello")
    })
  )

  it.effect.each(modes)(
    "%s: pii-redact and HTTP guardrails each see what the one before them left",
    ([mode, windowChars]) =>
      Effect.gen(function* () {
        const events = Streams.chat.events("Write to ja", "ne@example", ".com or [EMAIL_1]")
        const ask = Effect.fnUntraced(function* (...mandatory_guardrails: ReadonlyArray<string>) {
          const gateway = yield* Proxy.make({
            configured: Streams.registered({ mode, windowChars }),
            upstream: Streams.paced(events),
            egress: Egress.says({ action: "allow" })
          })
          const key = yield* Proxy.issueKey({}, { guardrails: { mandatory_guardrails } })
          const body = { model: "m", stream: true, messages: [{ role: "user", content: "I am a@b.co" }] }
          const wire = yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body })
          assert.strictEqual(Streams.chat.read(wire.text), "Write to [EMAIL_2] or a@b.co")
          assert.isTrue(wire.text.endsWith("data: [DONE]\n\n"))
          assert.strictEqual(
            wire.header("x-svc-applied-guardrails"),
            mandatory_guardrails.toSorted().reverse().join(",")
          )
          const [record] = yield* gateway.records
          assert.deepStrictEqual(
            record?.guardrails?.filter((ran) => ran.mode === "during_call").map((ran) => ran.guardrail_name),
            [...mandatory_guardrails]
          )
          return gateway.asked.flatMap(Streams.textsOf).map(({ text }) => text)
        })
        assert.deepStrictEqual(yield* ask("pii-redact", "guard"), ["Write to [EMAIL_2] or a@b.co"])
        assert.deepStrictEqual(yield* ask("guard", "pii-redact"), ["Write to jane@example.com or [EMAIL_1]"])
      })
  )

  it.effect("two HTTP guardrails run one after the other, and a block of the second one is the stream's end", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        configured: Effect.andThen(
          Streams.registered({ name: "first" }),
          Streams.registered({ name: "second", mode: "window" })
        ),
        upstream: Streams.paced(Streams.chat.events("one ", "two")),
        egress: (asked) =>
          asked.url.includes("first")
            ? Streams.judging((texts) => ({
                action: "modify",
                response: { texts: texts.map(({ lane }) => ({ lane, text: "so bad" })) }
              }))(asked)
            : Streams.blockingBad(asked)
      })
      const key = yield* Proxy.issueKey({}, { guardrails: { mandatory_guardrails: ["first", "second"] } })
      const wire = yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: { model: "m", stream: true } })
      assert.strictEqual(Streams.errorCodeOf(wire.text), "guardrail_blocked")
      assert.notInclude(wire.text, "so bad")
      const [record] = yield* gateway.records
      assert.deepStrictEqual(
        record?.guardrails?.map((ran) => [ran.guardrail_name, ran.action]),
        [
          ["first", "modify"],
          ["second", "block"]
        ]
      )
    })
  )
})

const cut = (text: string, size: number): ReadonlyArray<Buffer> => {
  const bytes = Buffer.from(text)
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.subarray(at * size, (at + 1) * size))
}

const errorStart = (family: Streams.Family) => (family === Streams.messages ? "event: error" : 'data: {"error"')
