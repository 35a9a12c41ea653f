import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import * as Egress from "../ScriptedEgress.ts"
import * as Streams from "./GuardedStreams.ts"
import * as Proxy from "./Proxy.ts"
import * as Upstream from "./ScriptedUpstream.ts"

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
            const { gateway, request } = yield* Streams.guarded(
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
      const { gateway, request } = yield* Streams.guarded(
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
      const { gateway, request } = yield* Streams.guarded(
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
        const { gateway, request } = yield* Streams.guarded(
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
      const { gateway, request } = yield* Streams.guarded(
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
      const { gateway, request } = yield* Streams.guarded(Streams.messages, {
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
      const key = yield* Proxy.issueKey({ max_stream_duration_seconds: 1 }, { guardrails: Streams.guard })
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
