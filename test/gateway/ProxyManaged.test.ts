import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { Database } from "../../src/services/Database.ts"
import * as Proxy from "./Proxy.ts"
import * as Upstream from "./ScriptedUpstream.ts"

layer(Proxy.database)("ProxyApp, managed by the gateway", (it) => {
  it.effect("forwards path, query and body byte for byte, and the answer likewise", () =>
    Effect.gen(function* () {
      const answer = ["Content-Type", "application/json", "X-Own", "a=1", "x-own", "b=2"]
      const gateway = yield* Proxy.make({ upstream: Upstream.answers(201, answer, '{"id" : "c",', '"usage":null}\n') })
      const key = yield* Proxy.issueKey()
      const body = '{ "model" : "large", "seed":12345678901234567890, "messages":[] }\n'
      const wire = yield* gateway.ask({ target: "/v1/chat/%63ompletions?a=/../b&c", headers: key.headers, body })
      const [sent] = gateway.sent
      assert.deepInclude(sent, {
        origin: "https://upstream.test",
        method: "POST",
        target: "/v1/chat/%63ompletions?a=/../b&c",
        text: body,
        headersWithinMs: 120_000,
        idleWithinMs: 120_000
      })
      assert.deepStrictEqual([wire.status, wire.ending, wire.text], [201, "whole", '{"id" : "c","usage":null}\n'])
      assert.deepStrictEqual(wire.received.slice(0, 6), answer)
    })
  )

  it.effect("records what the upstream reports, at the operator's price", () =>
    Effect.gen(function* () {
      const usage = {
        prompt_tokens: 20,
        completion_tokens: 5,
        total_tokens: 25,
        prompt_tokens_details: { cached_tokens: 8 },
        completion_tokens_details: { reasoning_tokens: 3 }
      }
      const gateway = yield* Proxy.make({ upstream: Upstream.json({ usage }), configured: priced })
      const key = yield* Proxy.issueKey({}, { project: true })
      const headers = [...key.headers, "X-Request-Id", "my-id", "traceparent", traceparent]
      yield* gateway.ask({ target: Proxy.chat, headers, body: { model: "large", messages: [] } })
      const [record, ...more] = yield* gateway.records
      assert.lengthOf(more, 0)
      assert.match(record?.id ?? "", /^[0-9a-f]{8}-[0-9a-f-]{27}$/)
      for (const hash of [record?.request_hash, record?.response_hash]) assert.match(hash ?? "", /^[\w-]{22}$/)
      assert.deepStrictEqual<unknown>(record, {
        id: record?.id,
        created_at: Proxy.noon,
        request_id: "my-id",
        key_id: key.id,
        team_id: null,
        project_id: key.projectId,
        route: Proxy.chat,
        model: "large",
        provider: "upstream",
        status_code: 200,
        error_code: null,
        latency_ms: 0,
        upstream_ms: 0,
        first_byte_ms: 0,
        gateway_ms: 0,
        usage_source: "reported",
        input_tokens: 20,
        output_tokens: 5,
        total_tokens: 25,
        cached_input_tokens: 8,
        cache_write_tokens: null,
        reasoning_tokens: 3,
        cost_nanos: 20 * 1000 + 5 * 2000,
        cost_source: "price_table",
        streamed: false,
        task_id: null,
        run_id: null,
        trace_id: "4bf92f3577b34da6a3ce929d0e0e4736",
        subject: null,
        end_user: null,
        session_id: null,
        client: "other",
        fallback_count: 0,
        fallback_reason: null,
        service_name: null,
        http_method: null,
        endpoint_path: null,
        endpoint_template: null,
        cost_mode: null,
        pricing_rule_name: null,
        policy_version: 1,
        tools: null,
        estimated_input_tokens: 2,
        denial: null,
        guardrail_action_count: null,
        guardrails: null,
        objects: null,
        request_hash: record?.request_hash,
        response_hash: record?.response_hash
      })
    })
  )

  it.effect("records the end user, the session and the class of the client as the client names them", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make()
      const key = yield* Proxy.issueKey()
      const ask = (headers: ReadonlyArray<string>, members: object) =>
        gateway.ask({ target: Proxy.chat, headers: [...key.headers, ...headers], body: { model: "m", ...members } })
      const agent = ["User-Agent", "claude-cli/2.0.1 (external, cli)"]
      yield* ask([...agent, "session-id", "second", "X-Claude-Code-Session-Id", "first"], { user: "ada" })
      yield* ask(["x-svc-run-id", "third", "session-id", "not valid"], { metadata: { user_id: "b\t".repeat(200) } })
      const [first, second] = yield* gateway.records
      assert.deepInclude(first, { end_user: "ada", session_id: "first", client: "claude-code", run_id: null })
      // without the workers' token a run is not recorded
      assert.deepInclude(second, { session_id: null, client: "other", run_id: null })
      assert.strictEqual(second?.end_user, "b\ufffd".repeat(128))
    })
  )

  it.effect("records when the first byte came, and the gateway's own share of the latency", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ upstream: Upstream.json({}) })
      const key = yield* Proxy.issueKey()
      const refused = yield* Proxy.issueKey({ allowed_models: ["other"] })
      yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: { model: "m", messages: [] } })
      yield* gateway.ask({ target: Proxy.chat, headers: refused.headers, body: { model: "m", messages: [] } })
      const [sent, unsent] = yield* gateway.records
      assert.deepInclude(sent, { status_code: 200, first_byte_ms: 0, gateway_ms: 0 })
      assert.deepInclude(unsent, { status_code: 403, first_byte_ms: null, gateway_ms: null, upstream_ms: null })
    })
  )

  it.effect("accounts for a batch by the dearest of its models, and by a guess as soon as one has no price", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: priced })
      const key = yield* Proxy.issueKey()
      const ask = (...models: ReadonlyArray<string>) => {
        const requests = models.map((model) => ({ custom_id: "", params: { model, max_tokens: 100 } }))
        return gateway.ask({ target: "/v1/messages/batches", headers: key.headers, body: { requests } })
      }
      yield* ask("small", "large")
      yield* ask("large", "unknown")
      const [known, guessed] = yield* gateway.records
      const input = known?.input_tokens ?? 0
      assert.deepInclude(known, {
        cost_nanos: input * 1000 + 200 * 2000,
        cost_source: "price_table",
        total_tokens: input + 200
      })
      assert.deepInclude(guessed, { cost_nanos: 20_000_000, cost_source: "route_default" })
    })
  )

  it.effect("counts in whole tokens, whatever a request multiplies them by", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make()
      const key = yield* Proxy.issueKey()
      const requests = [{ custom_id: "", params: { model: "m", max_tokens: 1001, n: 1.5 } }]
      yield* gateway.ask({ target: "/v1/messages/batches", headers: key.headers, body: { requests } })
      const [record] = yield* gateway.records
      assert.strictEqual(record?.total_tokens, 2002 + (record?.input_tokens ?? 0))
    })
  )

  it.effect("settles before the client has the end of its answer", () =>
    Effect.gen(function* () {
      const lengthless = yield* Proxy.make({ upstream: Upstream.events("data: 1\n\n", "data: [DONE]\n\n") })
      const key = yield* Proxy.issueKey({ rpm_limit: 5 })
      yield* lengthless.ask({ target: Proxy.messages, headers: key.headers, body: { stream: true } })
      assert.deepStrictEqual(lengthless.journal, [
        "admission",
        "head 200",
        "write data: 1\n\n",
        "settlement",
        "write data: [DONE]\n\n",
        "end"
      ])

      const sized = yield* Proxy.make({ upstream: Upstream.answers(200, ["content-length", "4"], "ab", "cd") })
      const other = yield* Proxy.issueKey()
      yield* sized.ask({ method: "GET", target: "/v1/models", headers: other.headers })
      assert.deepStrictEqual(sized.journal, ["head 200", "write ab", "settlement", "write cd", "end"])
    })
  )

  it.effect("holds back the last event of each family alone: what a model says of it is no event", () =>
    Effect.gen(function* () {
      for (const last of [
        "data: [DONE]\n\n",
        "event: message_stop\ndata: {}\n\n",
        "event: response.completed\ndata: {}\n\n"
      ]) {
        const said = `data: {"delta":"data: [DONE] event: message_stop"}\n\n`
        const gateway = yield* Proxy.make({ upstream: Upstream.events(said, `${said}${last}`) })
        const key = yield* Proxy.issueKey()
        yield* gateway.ask({ target: Proxy.messages, headers: key.headers, body: { stream: true } })
        assert.deepStrictEqual(gateway.journal, [
          "head 200",
          `write ${said}`,
          "settlement",
          `write ${said}${last}`,
          "end"
        ])
      }
    })
  )

  it.effect("asks for usage beside whatever the client has put into stream_options", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ upstream: Upstream.events("data: [DONE]\n\n") })
      const key = yield* Proxy.issueKey()
      const deep = `${"[".repeat(254)}${"]".repeat(254)}`
      const body = `{"model":"m","stream":true,"stream_options":{"0":0,"a":${deep}}}`
      const wire = yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body })
      assert.strictEqual(wire.status, 200)
      assert.strictEqual(gateway.sent[0]?.text, body.replace(`{"0"`, `{"include_usage":true,"0"`))
    })
  )

  it.effect("holds it back however the upstream cuts it, and nothing before it", () =>
    Effect.gen(function* () {
      const chunks = ['data: {"delta":"say ', 'data: [DONE] now"}\n\n', "data: [DO", "NE]", "\n", "\n"]
      const gateway = yield* Proxy.make({ upstream: Upstream.events(...chunks) })
      const key = yield* Proxy.issueKey()
      yield* gateway.ask({ target: Proxy.messages, headers: key.headers, body: { stream: true } })
      const [said, rest, done, more, ...end] = chunks.map((chunk) => `write ${chunk}`)
      assert.deepStrictEqual(gateway.journal, ["head 200", said, rest, done, more, "settlement", ...end, "end"])
    })
  )

  it.effect("lets it go when another event follows, or more of it than is held", () =>
    Effect.gen(function* () {
      const stop = "event: message_stop\ndata: {}\n\n"
      const turn = "event: message_start\ndata: {}\n\n"
      const endless = `event: message_stop\ndata: ${"x".repeat(300_000)}`
      for (const [chunks, held] of [
        [[turn, stop, ": ping\n\n", turn, turn, stop], 1],
        [[stop, endless, "y".repeat(150_000), "z".repeat(150_000)], 1],
        [[stop, endless, "y".repeat(150_000), "z".repeat(10_000)], 2]
      ] as const) {
        const gateway = yield* Proxy.make({ upstream: Upstream.events(...chunks) })
        const key = yield* Proxy.issueKey()
        yield* gateway.ask({ target: Proxy.messages, headers: key.headers, body: { stream: true } })
        const writes = chunks.map((chunk) => `write ${chunk}`)
        const [passed, end] = [writes.slice(0, -held), writes.slice(-held)]
        assert.deepStrictEqual(gateway.journal, ["head 200", ...passed, "settlement", ...end, "end"])
      }
    })
  )

  it.effect("waits for a client that does not keep up with what comes behind a last event, or within it", () =>
    Effect.gen(function* () {
      const [long, longer, longest] = ["x", "y", "z"].map((letter) => letter.repeat(150_000))
      for (const [chunks, expected] of [
        [
          ["data: [DONE]\n\n", "data: more\n\n", "data: more\n\n"],
          ["continue", "pause", "pause"]
        ],
        [
          [`event: message_stop\ndata: ${long}`, longer, longest, longest],
          ["continue", "pause", "pause", "pause"]
        ]
      ] as const) {
        const flows: Array<string> = []
        const gateway = yield* Proxy.make({
          upstream: (sink) =>
            Effect.sync(() => {
              sink.head(200, ["content-type", "text/event-stream"])
              for (const chunk of chunks) flows.push(sink.chunk(Buffer.from(chunk ?? "")))
            })
        })
        const key = yield* Proxy.issueKey()
        yield* gateway.ask({ target: Proxy.messages, headers: key.headers, body: { stream: true }, slow: true })
        assert.deepStrictEqual<ReadonlyArray<string>>(flows, expected)
      }
    })
  )

  it.effect("asks for the usage of a chat stream, and hides what the client did not ask for", () =>
    Effect.gen(function* () {
      const stream = [
        'data: {"id":"c","choices":[{"delta":{"content":"née"}}],"usage":null}\n\n',
        'data: {"id":"c","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}}\n\n',
        "data: [DONE]\n\n"
      ]
      const gateway = yield* Proxy.make({ upstream: Upstream.events(...stream) })
      const key = yield* Proxy.issueKey()
      const ask = (body: string) => gateway.ask({ target: Proxy.chat, headers: key.headers, body })

      const silent = yield* ask('{"model":"m", "stream":true}')
      assert.strictEqual(silent.text, 'data: {"id":"c","choices":[{"delta":{"content":"née"}}]}\n\ndata: [DONE]\n\n')
      const asking = yield* ask('{"stream":true,"stream_options":{"include_usage":true}}')
      assert.strictEqual(asking.text, stream.join(""))
      yield* ask('{"stream":true,"stream_options":{"include_obfuscation":false}}')
      const plain = '{"stream_options":{"include_usage":true},"stream":true,"extra_body":{"stream_options":'
      assert.strictEqual((yield* ask(`${plain}{"include_usage":false}}}`)).text, stream.join(""))
      yield* ask('{"stream":false}')
      assert.deepStrictEqual(
        gateway.sent.map(({ text }) => text),
        [
          '{"stream_options":{"include_usage":true},"model":"m", "stream":true}',
          '{"stream":true,"stream_options":{"include_usage":true}}',
          '{"stream":true,"stream_options":{"include_usage":true,"include_obfuscation":false}}',
          `${plain}{"include_usage":true}}}`,
          '{"stream":false}'
        ]
      )
      const records = yield* gateway.records
      assert.deepStrictEqual<unknown>(
        records.map(({ input_tokens, output_tokens, usage_source }) => [input_tokens, output_tokens, usage_source]),
        records.map(() => [7, 2, "reported"])
      )
    })
  )

  it.effect("reads the usage of a message stream, and changes nothing in it", () =>
    Effect.gen(function* () {
      const stream = [
        'event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":25,"cache_read_input_tokens":5,"output_tokens":1}}}\n\n',
        'event: message_delta\ndata: {"type":"message_delta","usage":{"output_tokens":15}}\n\n'
      ]
      const gateway = yield* Proxy.make({ upstream: Upstream.events(...stream) })
      const key = yield* Proxy.issueKey()
      const body = '{"model":"m","stream":true}'
      const wire = yield* gateway.ask({ target: Proxy.messages, headers: ["x-api-key", key.raw], body })
      assert.deepStrictEqual([wire.text, gateway.sent[0]?.text], [stream.join(""), body])
      assert.deepInclude((yield* gateway.records)[0], {
        input_tokens: 30,
        output_tokens: 15,
        cached_input_tokens: 5,
        streamed: true
      })
    })
  )

  it.effect("reads usage in the terms of the path, whatever version a header names", () =>
    Effect.gen(function* () {
      const usage = {
        prompt_tokens: 20,
        completion_tokens: 5,
        total_tokens: 25,
        prompt_tokens_details: { cached_tokens: 8 }
      }
      const gateway = yield* Proxy.make({ upstream: Upstream.json({ usage }) })
      const key = yield* Proxy.issueKey()
      yield* gateway.ask({ target: Proxy.chat, headers: [...key.headers, "anthropic-version", "2023-06-01"], body: {} })
      assert.deepInclude((yield* gateway.records)[0], { input_tokens: 20, cached_input_tokens: 8 })
    })
  )

  it.effect(
    "asks for an answer without encoding where it reads it, and leaves the choice to the client elsewhere",
    () =>
      Effect.gen(function* () {
        const gateway = yield* Proxy.make()
        const key = yield* Proxy.issueKey()
        const headers = [...key.headers, "Accept-Encoding", "gzip"]
        yield* gateway.ask({ target: Proxy.chat, headers, body: {} })
        yield* gateway.ask({ method: "GET", target: "/v1/models", headers })
        const encodings = gateway.sent.map((sent) =>
          sent.headers.filter((_, i) => sent.headers[i - 1]?.toLowerCase() === "accept-encoding")
        )
        assert.deepStrictEqual(encodings, [["identity"], ["gzip"]])
      })
  )

  it.effect("keeps guardrails to itself: no upstream sees the member", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make()
      const key = yield* Proxy.issueKey()
      yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: '{"model": "m", "guardrails": [], "n": 1}' })
      assert.strictEqual(gateway.sent[0]?.text, '{"model": "m", "n": 1}')
    })
  )

  it.effect("passes the upstream's own failures on, and bills nothing for them", () =>
    Effect.gen(function* () {
      const refusal = { error: { message: "slow down", usage: { prompt_tokens: 5 } } }
      const gateway = yield* Proxy.make({ upstream: Upstream.json(refusal, 429) })
      const key = yield* Proxy.issueKey({ daily_budget_usd: 1 })
      const wire = yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: {} })
      assert.deepStrictEqual([wire.status, wire.text], [429, JSON.stringify(refusal)])
      assert.deepInclude((yield* gateway.records)[0], {
        status_code: 429,
        error_code: null,
        cost_nanos: null,
        usage_source: "status_only"
      })
    })
  )

  it.effect("says on the answer what is left of the minute, in place of what the upstream says of its own", () =>
    Effect.gen(function* () {
      const theirs = ["x-ratelimit-limit-requests", "9999", "x-request-id", "upstream-1"]
      const gateway = yield* Proxy.make({ upstream: Upstream.answers(200, theirs, "{}") })
      const key = yield* Proxy.issueKey({ rpm_limit: 3, tpm_limit: 1000 })
      const wire = yield* gateway.ask({
        target: Proxy.chat,
        headers: [...key.headers, "x-request-id", "mine"],
        body: { max_tokens: 10, user: "abcd" }
      })
      assert.deepStrictEqual(
        [
          "x-ratelimit-limit-requests",
          "x-ratelimit-remaining-requests",
          "x-ratelimit-reset-requests",
          "x-ratelimit-remaining-tokens",
          "x-request-id",
          "x-upstream-request-id"
        ].map(wire.header),
        ["3", "2", "60s", "989", "mine", "upstream-1"]
      )
    })
  )

  it.effect("gives an id to a request that brings none, or none that is fit", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make()
      const key = yield* Proxy.issueKey()
      for (const unfit of [[], ["x-request-id", "two words"], ["x-request-id", "x".repeat(129)]]) {
        const wire = yield* gateway.ask({ method: "GET", target: "/v1/models", headers: [...key.headers, ...unfit] })
        assert.match(wire.header("x-request-id") ?? "", /^[0-9a-f-]{36}$/)
      }
      const records = yield* gateway.records
      assert.deepStrictEqual(
        records.map(({ id }) => id),
        records.map(({ request_id }) => request_id)
      )
    })
  )

  it.effect("names task and run of a request that a trusted worker sends, and of no other", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make()
      const key = yield* Proxy.issueKey()
      const ids = ["x-svc-task-id", "t-1", "x-svc-run-id", "r-1"]
      const ask = (token: string) =>
        gateway.ask({
          method: "GET",
          target: "/v1/models",
          headers: [...key.headers, ...ids, "x-svc-worker-token", token]
        })
      yield* ask("worker-secret")
      yield* ask("worker-secret-not")
      const own = gateway.sent.map(({ headers }) =>
        headers.filter((_, i) => /^x-svc-(?:task|run)-id$/.test(headers[i - 1] ?? ""))
      )
      assert.deepStrictEqual(own, [["t-1", "r-1"], []])
      const records = yield* gateway.records
      assert.deepStrictEqual(
        records.map(({ run_id, task_id }) => [task_id, run_id]),
        [
          ["t-1", "r-1"],
          [null, null]
        ]
      )
    })
  )

  it.effect("records a model's name so that every store can hold it", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make()
      const key = yield* Proxy.issueKey()
      const names = [`${"a".repeat(255)}😀`, "\ud800x", "a\u0000b", "x".repeat(1000)]
      yield* Effect.forEach(names, (model) =>
        gateway.ask({ target: Proxy.chat, headers: key.headers, body: { model } })
      )
      for (const { model } of yield* gateway.records) {
        assert.isTrue(model?.isWellFormed())
        assert.isAtMost(model?.length ?? 0, 256)
        assert.notMatch(model ?? "", /\p{Cc}/u)
      }
    })
  )
})

const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

const priced = Effect.gen(function* () {
  const { sql } = yield* Database
  yield* sql`INSERT INTO model_prices (model, input_nanos_per_million, output_nanos_per_million) VALUES
    ('large', 1000000000, 2000000000), ('small', 1000000, 2000000)`
})
