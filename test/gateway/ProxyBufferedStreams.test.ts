import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import * as Egress from "../ScriptedEgress.ts"
import * as Streams from "./GuardedStreams.ts"
import * as Proxy from "./Proxy.ts"
import * as Upstream from "./ScriptedUpstream.ts"

layer(Proxy.database)("ProxyApp, HTTP guardrails on whole streams", (it) => {
  it.effect.each(Streams.families)(
    "%s: one call has all texts, and what is allowed arrives byte for byte",
    ([, family]) =>
      Effect.gen(function* () {
        const stream = [": hello\r\n\r\n", "id: 7\n", ...family.events("He", "llo ", "\u{1f600}")].join("")
        const { gateway, request } = yield* Streams.guarded(family, {
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
            metadata: { score: 1, calls: 1, longest_call_ms: 0, held_characters: 8, first_text_delay_ms: 0 }
          }
        ])
      })
  )

  it.effect.each(Streams.families)("%s: the first piece carries a new text, and the others are empty", ([, family]) =>
    Effect.gen(function* () {
      const { gateway, request } = yield* Streams.guarded(family, {
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
      const { gateway, request } = yield* Streams.guarded(
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
      const { gateway, request } = yield* Streams.guarded(Streams.chat, {
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
        const { gateway, request } = yield* Streams.guarded(family, {
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
      const { gateway, request } = yield* Streams.guarded(Streams.chat, {
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
      const { gateway, request } = yield* Streams.guarded(
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
      const { gateway, request } = yield* Streams.guarded(Streams.chat, {
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
      const limited = yield* Streams.guarded(Streams.chat, {
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
      const crowded = yield* Streams.guarded(Streams.chat, {
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
          const { gateway, request } = yield* Streams.guarded(
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
        const { gateway, request } = yield* Streams.guarded(Streams.chat, {
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

const cut = (text: string, size: number): ReadonlyArray<Buffer> => {
  const bytes = Buffer.from(text)
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.subarray(at * size, (at + 1) * size))
}
