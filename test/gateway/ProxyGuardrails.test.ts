import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import type { Execution, Mode } from "../../src/policy/Guardrail.ts"
import type { GuardrailPolicyPatch } from "../../src/policy/GuardrailPolicy.ts"
import { Database } from "../../src/services/Database.ts"
import * as Changes from "../../src/state/Changes.ts"
import { eventually } from "../Eventually.ts"
import * as RealTime from "../RealTime.ts"
import * as Egress from "../ScriptedEgress.ts"
import * as Proxy from "./Proxy.ts"
import type { RecordingWire } from "./RecordingWire.ts"
import * as Upstream from "./ScriptedUpstream.ts"

const pii: GuardrailPolicyPatch = { mandatory_guardrails: ["pii-redact"] }

layer(Proxy.database)("ProxyApp, guardrails", (it) => {
  it.effect("pii-redact: the upstream sees placeholders, the client its own words, and nobody new findings", () =>
    Effect.gen(function* () {
      const answer = { content: "I wrote to [EMAIL_1] and to jane@example.com", usage }
      const gateway = yield* Proxy.make({ upstream: Upstream.json(answer) })
      const key = yield* Proxy.issueKey({}, { guardrails: pii })
      const body = '{ "model":"m", "seed":1.50, "messages":[{"role":"user","content":"mail john@example.com"}] }'
      const headers = [...key.headers, "accept-encoding", "gzip"]
      const wire = yield* gateway.ask({ target: Proxy.chat, headers, body })
      const [sent] = gateway.sent
      assert.strictEqual(sent?.text, body.replace("john@example.com", "[EMAIL_1]"))
      assert.deepStrictEqual(valuesOf(sent?.headers, "accept-encoding"), ["identity"])
      const expected = JSON.stringify({ ...answer, content: "I wrote to john@example.com and to [EMAIL_2]" })
      assert.deepStrictEqual([wire.status, wire.ending, wire.text], [200, "whole", expected])
      assert.deepStrictEqual(valuesOf(wire.received, "content-length"), [String(Buffer.byteLength(expected))])
      assert.strictEqual(wire.header("x-svc-applied-guardrails"), "pii-redact")

      const [record] = yield* gateway.records
      assert.deepInclude(record, {
        status_code: 200,
        total_tokens: 25,
        usage_source: "reported",
        guardrail_action_count: 2
      })
      assert.deepStrictEqual(record?.guardrails, [
        { ...ran("pre_call"), metadata: { email_count: 1, phone_count: 0, ssn_count: 0 } },
        { ...ran("post_call"), metadata: { email_count: 1, phone_count: 0, ssn_count: 0 } }
      ])
      assert.notInclude(JSON.stringify(record), "example.com")
    })
  )

  it.effect("restore_output false keeps placeholders, by the catalogue or by the key's override", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ upstream: Upstream.json({ content: "[EMAIL_1]" }) })
      const overridden = { ...pii, guardrail_config_overrides: { "pii-redact": { restore_output: false } } }
      const asked = (guardrails: GuardrailPolicyPatch) =>
        Effect.flatMap(Proxy.issueKey({}, { guardrails }), ({ headers }) =>
          gateway.ask({ target: Proxy.chat, headers, body: mail })
        )
      assert.strictEqual((yield* asked(pii)).text, '{"content":"a@b.co"}')
      assert.strictEqual((yield* asked(overridden)).text, '{"content":"[EMAIL_1]"}')
    })
  )

  it.effect("an answer that nests deeper than guardrails look does not pass", () =>
    Effect.gen(function* () {
      const nested = (levels: number) => `${"[".repeat(levels)}"[EMAIL_1]"${"]".repeat(levels)}`
      for (const [levels, status] of [
        [256, 200],
        [257, 502]
      ] as const) {
        const gateway = yield* Proxy.make({ upstream: Upstream.answers(200, json, nested(levels)) })
        const key = yield* Proxy.issueKey({}, { guardrails: pii })
        const wire = yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: mail })
        assert.strictEqual(wire.status, status)
        assert.match(wire.text, status === 200 ? /"a@b.co"/ : /nests too deeply.*guardrail_unavailable/)
      }
    })
  )

  it.effect("what selects no guardrail is not touched, and does not wait", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ upstream: Upstream.answers(200, json, '{"content" : ', '"a@b.co"}') })
      const key = yield* Proxy.issueKey({}, { guardrails: { optional_guardrails: ["pii-redact"] } })
      const wire = yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: mail })
      assert.strictEqual(gateway.sent[0]?.text, JSON.stringify(mail))
      assert.strictEqual(wire.text, '{"content" : "a@b.co"}')
      assert.isUndefined(wire.header("x-svc-applied-guardrails"))
      assert.include(gateway.journal, 'write {"content" : ')
      const [record] = yield* gateway.records
      assert.deepInclude(record, { guardrails: null, guardrail_action_count: null })

      const chosen = { ...mail, guardrails: ["pii-redact"] }
      yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: chosen })
      assert.deepStrictEqual(JSON.parse(gateway.sent[1]?.text ?? ""), { messages: [{ content: "[EMAIL_1]" }] })
    })
  )

  it.effect("selection is refused before anything is reserved or sent", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: registered({ name: "off", enabled: false }) })
      const cases: ReadonlyArray<readonly [GuardrailPolicyPatch, ReadonlyArray<string>, number, string]> = [
        [{}, ["pii-redact"], 403, "guardrail_forbidden"],
        [{ ...pii, forbidden_guardrails: ["pii-redact"] }, [], 403, "guardrail_forbidden"],
        [{ forbidden_guardrails: ["off"], guardrail_config_overrides: { off: {} } }, [], 403, "guardrail_forbidden"],
        [{ mandatory_guardrails: ["off"] }, [], 502, "guardrail_unavailable"],
        [{ mandatory_guardrails: ["nobody"] }, [], 502, "guardrail_unavailable"],
        [{ optional_guardrails: ["off"] }, ["off"], 400, "invalid_guardrail_request"]
      ]
      for (const [guardrails, names, status, code] of cases) {
        const key = yield* Proxy.issueKey({ rpm_limit: 5 }, { guardrails })
        const wire = yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: { guardrails: names } })
        assert.deepStrictEqual([wire.status, codeOf(wire)], [status, code])
      }
      assert.deepStrictEqual(gateway.sent, [])
      assert.notInclude(gateway.journal, "admission")
      const recorded = (yield* gateway.records).map(({ error_code }) => error_code)
      assert.deepStrictEqual(
        recorded,
        cases.map(([, , , code]) => code)
      )
    })
  )

  it.effect("default-on guards every key, and a policy that forbids it stops it", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        configured: configured((sql) => sql`UPDATE guardrail_definitions SET default_on = true`)
      })
      const free = yield* Proxy.issueKey({}, { guardrails: { forbidden_guardrails: ["pii-redact"] } })
      for (const { headers } of [yield* Proxy.issueKey(), free]) {
        yield* gateway.ask({ target: Proxy.chat, headers, body: mail })
      }
      assert.deepStrictEqual(
        gateway.sent.map(({ text }) => text.includes("a@b.co")),
        [false, true]
      )
    })
  )

  it.effect("a stream passes through the guardrail of answers, and one that needs none passes as it is", () =>
    Effect.gen(function* () {
      const piece = (text: string) => ({ choices: [{ index: 0, delta: { content: text } }] })
      const events = ["Write to ja", "ne@example", ".com", ". Or [EMAIL_1]"].map(
        (text) => `data: ${JSON.stringify(piece(text))}\n\n`
      )
      const gateway = yield* Proxy.make({ upstream: Upstream.events([...events, "data: [DONE]\n\n"].join("")) })
      const key = yield* Proxy.issueKey({}, { guardrails: pii })
      const ask = gateway.ask({ target: Proxy.chat, headers: key.headers, body: { ...mail, stream: true } })
      const passed = yield* ask
      const texts = passed.text
        .split("\n\n")
        .filter((event) => event.startsWith("data: {"))
        .map((event) => JSON.parse(event.slice(6)).choices[0].delta.content)
      assert.strictEqual(texts.join(""), "Write to [EMAIL_2]. Or a@b.co")
      assert.isTrue(passed.text.endsWith("data: [DONE]\n\n"))
      assert.strictEqual(passed.header("x-svc-applied-guardrails"), "pii-redact")
      const [record] = yield* gateway.records
      assert.deepStrictEqual(
        record?.guardrails?.map(({ action, metadata, mode }) => [mode, action, metadata["email_count"]]),
        [
          ["pre_call", "modify", 1],
          ["during_call", "modify", 1]
        ]
      )
      yield* configured((sql) => sql`UPDATE guardrail_definitions SET modes = '{pre_call}'`)
      yield* heard
      const untouched = yield* RealTime.effect(
        eventually(ask, ({ text }) => text.includes("jane") || text.includes("ne@"))
      )
      assert.strictEqual(untouched.text, [...events, "data: [DONE]\n\n"].join(""))
    })
  )

  it.effect("direct mode runs no guardrail, and leaves the member to the upstream", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        configured: Proxy.configureRoute("chat-completions", { mode: "direct_upstream_passthrough" })
      })
      const key = yield* Proxy.issueKey({}, { guardrails: pii })
      const body = { ...mail, guardrails: ["of-the-upstream"] }
      const wire = yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body })
      assert.strictEqual(wire.status, 200)
      assert.strictEqual(gateway.sent[0]?.text, JSON.stringify(body))
    })
  )

  it.effect("an HTTP guardrail is asked with the request, its context and its token", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        egress: Egress.says({ action: "allow", metadata: { score: 1, secret_x: 2 } }),
        configured: registered({
          name: "guard",
          modes: ["pre_call"],
          token: "clear.guard-token",
          runtime: { level: 1 }
        })
      })
      const guardrails = { mandatory_guardrails: ["guard"], guardrail_config_overrides: { guard: { more: true } } }
      const key = yield* Proxy.issueKey({}, { guardrails, project: true })
      const { sql } = yield* Database
      yield* sql`UPDATE api_keys SET team_id = 'blue' WHERE id = ${key.id}`
      const headers = [...key.headers, "x-request-id", "r-1"]
      const body = '{"model":"m","seed":12345678901234567890}'
      const wire = yield* gateway.ask({ target: Proxy.chat, headers, body })
      assert.strictEqual(wire.status, 200)
      assert.strictEqual(gateway.sent[0]?.text, body)
      const [asked] = gateway.asked
      assert.deepInclude(asked, { url: "https://guard.test/check", bearer: "guard-token", withinMs: 1500 })
      assert.strictEqual(
        asked?.text,
        `{"request_id":"r-1","guardrail":"guard","mode":"pre_call","context":{"key_id":"${key.id}","team_id":"blue",` +
          `"user_id":null,"project_id":"${key.projectId}","model":"m","route":"/v1/chat/completions",` +
          `"provider":"upstream"},"config":{"level":1,"more":true},"request":${body},"response":null}`
      )
      const [record] = yield* gateway.records
      assert.deepStrictEqual(record?.guardrails, [
        { ...ran("pre_call"), guardrail_name: "guard", action: "allow", metadata: { score: 1 } }
      ])
    })
  )

  it.effect("a block is answered 403, recorded with its run, and the reservation is given back", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        egress: Egress.says({ action: "block", reason: "off topic" }),
        configured: registered({ name: "guard", modes: ["pre_call"] })
      })
      const key = yield* Proxy.issueKey({ tpm_limit: 100 }, { guardrails: { mandatory_guardrails: ["guard"] } })
      const ask = gateway.ask({ target: Proxy.chat, headers: key.headers, body: { max_tokens: 90 } })
      for (const _ of ["once", "twice"]) {
        const wire = yield* ask
        assert.deepStrictEqual([wire.status, codeOf(wire)], [403, "guardrail_blocked"])
        assert.notInclude(wire.text, "off topic")
      }
      assert.lengthOf(gateway.sent, 0)
      const [record] = yield* gateway.records
      assert.deepInclude(record, {
        status_code: 403,
        error_code: "guardrail_blocked",
        cost_nanos: null,
        guardrail_action_count: 1
      })
      assert.deepInclude(record?.guardrails?.[0], { action: "block", reason: "off topic" })
    })
  )

  it.effect("an answer that is blocked was had all the same: its tokens count", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        upstream: Upstream.json({ content: "off topic", usage }),
        egress: Egress.says({ action: "block" }),
        configured: registered({ name: "guard", modes: ["post_call"] })
      })
      const key = yield* Proxy.issueKey({}, { guardrails: { mandatory_guardrails: ["guard"] } })
      const wire = yield* gateway.ask({ target: Proxy.messages, headers: key.headers, body: { model: "m" } })
      assert.deepStrictEqual([wire.status, codeOf(wire)], [403, "guardrail_blocked"])
      assert.notInclude(wire.text, "off topic")
      assert.include(gateway.asked[0]?.text, '"request":null,"response":{"content":"off topic"')
      const [record] = yield* gateway.records
      assert.deepInclude(record, { status_code: 403, error_code: "guardrail_blocked", usage_source: "reported" })
    })
  )

  it.effect("a guardrail that fails: closed stops, open and dry run pass and note it", () =>
    Effect.gen(function* () {
      const scripts: ReadonlyArray<readonly [Egress.Script | undefined, string, number]> = [
        [undefined, "guardrail_unavailable", 502],
        [Egress.says({ action: "allow" }, 500), "guardrail_unavailable", 502],
        [Egress.says({ action: "shrug" }), "invalid_guardrail_request", 400],
        [() => Effect.succeed({ status: 200, body: "nonsense" }), "invalid_guardrail_request", 400],
        [
          () => Effect.succeed({ status: 200, body: "[".repeat(30_000) + "]".repeat(30_000) }),
          "invalid_guardrail_request",
          400
        ]
      ]
      for (const [egress, code, status] of scripts) {
        const outcomes: Array<unknown> = []
        for (const policy of ["fail_closed", "fail_open", "dry_run"]) {
          const gateway = yield* Proxy.make({
            ...(egress !== undefined && { egress }),
            configured: registered({ name: "guard", modes: ["pre_call"], policy })
          })
          const key = yield* Proxy.issueKey({}, { guardrails: { mandatory_guardrails: ["guard"] } })
          const wire = yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: {} })
          const [record] = yield* gateway.records
          const [execution] = record?.guardrails ?? []
          outcomes.push([wire.status, execution?.action, execution?.reason])
        }
        assert.deepStrictEqual(outcomes, [
          [status, "block", code],
          [200, "warn", code],
          [200, "warn", code]
        ])
      }
    })
  )

  it.effect("a dry run notes what it would have done, and does nothing", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        upstream: Upstream.json({ content: "a@b.co" }),
        configured: configured((sql) => sql`UPDATE guardrail_definitions SET failure_policy = 'dry_run'`)
      })
      const key = yield* Proxy.issueKey({}, { guardrails: pii })
      const wire = yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: mail })
      assert.strictEqual(gateway.sent[0]?.text, JSON.stringify(mail))
      assert.strictEqual(wire.text, '{"content":"a@b.co"}')
      const [record] = yield* gateway.records
      assert.deepStrictEqual(
        record?.guardrails?.map(({ action, metadata }) => [action, metadata["dry_run_action"]]),
        [
          ["warn", "modify"],
          ["warn", "modify"]
        ]
      )
    })
  )

  it.effect("one after the other: each sees what the one before it left", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        egress: Egress.says({ action: "modify", request: { model: "m", messages: ["instead"] } }),
        configured: registered({ name: "guard", modes: ["pre_call"] })
      })
      const guardrails = { mandatory_guardrails: ["pii-redact", "guard"] }
      const key = yield* Proxy.issueKey({}, { guardrails })
      yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: { model: "m", ...mail } })
      assert.include(gateway.asked[0]?.text, "[EMAIL_1]")
      assert.strictEqual(gateway.sent[0]?.text, '{"model":"m","messages":["instead"]}')
    })
  )

  it.effect.each([
    ["the model", { model: "dearer" }],
    ["streaming", { model: "m", stream: true }],
    ["tools", { model: "m", tools: [{}] }],
    ["the object", ["model", "m"]],
    ["the objects that it uses", { model: "m", previous_response_id: "resp_1" }],
    ["the guardrails", { model: "m", guardrails: ["other"] }]
  ] as const)("a guardrail may change words, and not what was decided: %s", ([, request]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        egress: Egress.says({ action: "modify", request }),
        configured: registered({ name: "guard", modes: ["pre_call"] })
      })
      const key = yield* Proxy.issueKey({}, { guardrails: { mandatory_guardrails: ["guard"] } })
      const wire = yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: { model: "m" } })
      assert.deepStrictEqual([wire.status, codeOf(wire)], [502, "guardrail_unavailable"])
      assert.lengthOf(gateway.sent, 0)
    })
  )

  it.effect("a guardrail may change the words of a request whose path names the model", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        egress: Egress.says({ action: "modify", request: { messages: ["instead"] } }),
        configured: registered({ name: "guard", modes: ["pre_call"] })
      })
      const key = yield* Proxy.issueKey({}, { guardrails: { mandatory_guardrails: ["guard"] } })
      const target = "/providers/compat/v1/engines/m/completions"
      const wire = yield* gateway.ask({ target, headers: key.headers, body: { messages: [] } })
      assert.deepStrictEqual([wire.status, gateway.sent[0]?.text], [200, '{"messages":["instead"]}'])
    })
  )

  it.effect("a guardrail that does not answer holds the request no longer than its timeout", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const gateway = yield* Proxy.make({
        egress: () => Effect.andThen(Deferred.succeed(begun, undefined), Effect.never),
        configured: registered({ name: "guard", modes: ["pre_call"] })
      })
      const key = yield* Proxy.issueKey({}, { guardrails: { mandatory_guardrails: ["guard"] } })
      const asking = yield* Effect.forkChild(gateway.ask({ target: Proxy.chat, headers: key.headers, body: {} }))
      yield* Deferred.await(begun)
      yield* TestClock.adjust("1500 millis")
      assert.strictEqual(codeOf(yield* Fiber.join(asking)), "guardrail_unavailable")
      const [record] = yield* gateway.records
      assert.strictEqual(record?.guardrails?.[0]?.latency_ms, 1500)
    })
  )

  it.effect("a client that hangs up while guardrails run is settled, and nothing is sent", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const goOn = yield* Deferred.make<void>()
      const gateway = yield* Proxy.make({
        egress: (asked) =>
          Deferred.succeed(begun, undefined).pipe(
            Effect.andThen(Deferred.await(goOn)),
            Effect.andThen(Egress.says({ action: "allow" })(asked))
          ),
        configured: registered({ name: "guard", modes: ["pre_call"] })
      })
      const key = yield* Proxy.issueKey({ tpm_limit: 100 }, { guardrails: { mandatory_guardrails: ["guard"] } })
      const asking = yield* Effect.forkChild(
        gateway.ask({ target: Proxy.chat, headers: key.headers, body: { max_tokens: 90 } })
      )
      yield* Deferred.await(begun)
      const hungUp = yield* Effect.forkChild(Fiber.interrupt(asking), { startImmediately: true })
      yield* Deferred.succeed(goOn, undefined)
      yield* Fiber.join(hungUp)
      assert.lengthOf(gateway.sent, 0)
      const [record] = yield* gateway.records
      assert.deepInclude(record, { status_code: 499, cost_nanos: null })
    })
  )

  it.effect.each([
    ["an encoded stream", ["content-type", "text/event-stream", "content-encoding", "br"], "data: a@b.co\n\n"],
    [
      "a stream in UTF-16",
      ["content-type", "text/event-stream; charset=utf-16le"],
      Buffer.from('data: {"a":"a@b.co"}\n\n', "utf16le")
    ],
    ["JSON in UTF-7", ["content-type", 'application/json; charset="utf-7"'], '{"a":"a+AEA-b.co"}'],
    ["text", ["content-type", "text/plain"], "a@b.co"],
    ["lines of JSON on a route that has none", ["content-type", "application/x-jsonl"], '{"a":1}\n{"a":2}\n'],
    ["no type", [], '{"a":1}'],
    ["something encoded", [...["content-type", "application/json"], "content-encoding", "br"], "…"],
    ["broken JSON", ["content-type", "application/json"], '{"a":'],
    ["broken UTF-8", ["content-type", "application/json"], Buffer.from([0x22, 0xff, 0x22])]
  ] as const)("an answer that guardrails cannot read does not pass: %s", ([, headers, body]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ upstream: Upstream.answers(200, headers, body) })
      const key = yield* Proxy.issueKey({}, { guardrails: pii })
      const wire = yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: mail })
      assert.deepStrictEqual([wire.status, codeOf(wire)], [502, "guardrail_unavailable"])
      assert.notInclude(wire.text, "b.co")
    })
  )

  it.effect.each(["application/x-jsonl", "application/binary", "application/json"])(
    "the results of a batch are read line by line, as %s",
    (type) =>
      Effect.gen(function* () {
        const result = (text: string) =>
          JSON.stringify({
            custom_id: "a-1",
            result: { type: "succeeded", message: { content: [{ type: "text", text }] } }
          })
        const lines = [result("to a@b.co"), result("to c@d.co"), ""]
        const results = Upstream.answers(200, ["content-type", type], lines.join("\n"))
        const gateway = yield* Proxy.make({
          upstream: (sink, request) =>
            (request.method === "POST" ? Upstream.json({ id: "msgbatch_1", type: "message_batch" }) : results)(
              sink,
              request
            )
        })
        const key = yield* Proxy.issueKey({}, { guardrails: pii })
        const target = "/v1/messages/batches"
        const batch = { requests: [{ custom_id: "a-1", params: { model: "m", max_tokens: 9, messages: [] } }] }
        yield* gateway.ask({ target, headers: key.headers, body: batch })
        const wire = yield* gateway.ask({ method: "GET", target: `${target}/msgbatch_1/results`, headers: key.headers })
        assert.deepStrictEqual(
          [wire.status, wire.text],
          [200, [result("to [EMAIL_1]"), result("to [EMAIL_2]"), ""].join("\n")]
        )
      })
  )

  it.effect("what has no body passes, and so does a refusal of the upstream that is no JSON", () =>
    Effect.gen(function* () {
      const scripts = [
        Upstream.answers(204, []),
        Upstream.answers(200, ["content-length", "0"]),
        Upstream.answers(503, ["content-type", "text/html"], "<p>later")
      ]
      const seen: Array<unknown> = []
      for (const upstream of scripts) {
        const gateway = yield* Proxy.make({ upstream })
        const key = yield* Proxy.issueKey({}, { guardrails: pii })
        const wire = yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: mail })
        seen.push([wire.status, wire.ending, wire.text])
      }
      assert.deepStrictEqual(seen, [
        [204, "whole", ""],
        [200, "whole", ""],
        [503, "whole", "<p>later"]
      ])
    })
  )

  it.effect("a refusal of the upstream in JSON is looked at, and keeps its status", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ upstream: Upstream.json({ error: "no [EMAIL_1], ask x@y.zz" }, 400) })
      const key = yield* Proxy.issueKey({}, { guardrails: pii })
      const wire = yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: mail })
      assert.deepStrictEqual([wire.status, wire.text], [400, '{"error":"no a@b.co, ask [EMAIL_2]"}'])
    })
  )

  it.effect("a held answer is bounded by the response limit, and by the room that there is for bodies", () =>
    Effect.gen(function* () {
      const long = { content: "x".repeat(2000) }
      const text = JSON.stringify(long)
      for (const upstream of [Upstream.json(long), Upstream.answers(200, json, text.slice(0, 900), text.slice(900))]) {
        const gateway = yield* Proxy.make({
          upstream,
          configured: Proxy.configureRoute("chat-completions", { responseBytes: 1000 })
        })
        const key = yield* Proxy.issueKey({}, { guardrails: pii })
        const wire = yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: mail })
        assert.deepStrictEqual([wire.status, codeOf(wire)], [413, "response_body_too_large"])
      }
      const ask = (upstream: Upstream.Script, maxInflightBufferBytes: number) =>
        Effect.gen(function* () {
          const gateway = yield* Proxy.make({ upstream, settings: { maxInflightBufferBytes } })
          const key = yield* Proxy.issueKey({}, { guardrails: pii })
          return (yield* gateway.ask({ target: Proxy.chat, headers: key.headers, body: mail })).status
        })
      assert.strictEqual(yield* ask(Upstream.json(long), 3000), 200)
      assert.strictEqual(yield* ask(Upstream.json(long), 1000), 503)
      // of unknown length: as long as the route allows
      assert.strictEqual(yield* ask(Upstream.answers(200, json, text), 1_000_000), 503)
      assert.strictEqual(yield* ask(Upstream.answers(200, json, text), 1_100_000), 200)
    })
  )

  it.effect("an upstream that fails is told as ever, and a client that leaves is let go", () =>
    Effect.gen(function* () {
      const failing = yield* Proxy.make({ upstream: Upstream.fails("body", "reset", Upstream.answers(200, json, "{")) })
      const key = yield* Proxy.issueKey({}, { guardrails: pii })
      const request = { target: Proxy.chat, headers: key.headers, body: mail }
      assert.strictEqual(codeOf(yield* failing.ask(request)), "upstream_connection")

      const begun = yield* Deferred.make<void>()
      const hanging = yield* Proxy.make({
        upstream: Upstream.hangs((sink) =>
          Effect.andThen(
            Effect.sync(() => sink.head(200, json)),
            Deferred.succeed(begun, undefined)
          )
        )
      })
      const again = yield* Proxy.issueKey({}, { guardrails: pii })
      const asking = yield* Effect.forkChild(hanging.ask({ ...request, headers: again.headers }))
      yield* Deferred.await(begun)
      yield* Fiber.interrupt(asking)
      const [record] = yield* hanging.records
      assert.strictEqual(record?.status_code, 499)
    })
  )

  it.effect("a batch's results and lists are answers too", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ upstream: Upstream.json({ data: ["x@y.zz"] }) })
      const key = yield* Proxy.issueKey({}, { guardrails: pii })
      const wire = yield* gateway.ask({ method: "GET", target: "/v1/models", headers: key.headers })
      assert.deepStrictEqual([wire.status, wire.text], [200, '{"data":["[EMAIL_1]"]}'])
    })
  )

  it.effect("a list of models that a guardrail has seen names only the models that the key may use", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ upstream: Upstream.json({ data: [{ id: "gpt-5" }, { id: "secret-1" }] }) })
      const key = yield* Proxy.issueKey({ allowed_models: ["gpt-5"] }, { guardrails: pii })
      const wire = yield* gateway.ask({ method: "GET", target: "/v1/models", headers: key.headers })
      assert.deepStrictEqual([wire.status, JSON.parse(wire.text)], [200, { data: [{ id: "gpt-5" }] }])
    })
  )
})

const mail = { messages: [{ content: "a@b.co" }] }
const json = ["content-type", "application/json"]
const usage = { prompt_tokens: 20, completion_tokens: 5, total_tokens: 25, input_tokens: 20, output_tokens: 5 }

const ran = (mode: Mode): Omit<Execution, "metadata"> => ({
  guardrail_name: "pii-redact",
  mode,
  action: "modify",
  failure_policy: "fail_closed",
  latency_ms: 0,
  reason: null
})

const codeOf = ({ text }: RecordingWire): unknown => JSON.parse(text).error.code

const valuesOf = (headers: ReadonlyArray<string> = [], name: string) =>
  headers.filter((_, index) => index % 2 === 1 && headers[index - 1]?.toLowerCase() === name)

const configured = (write: (sql: Database["Service"]["sql"]) => Effect.Effect<unknown, unknown>) =>
  Effect.gen(function* () {
    const { sql, transaction } = yield* Database
    yield* transaction(Effect.andThen(Effect.orDie(write(sql)), Changes.publish({ _tag: "Configuration" })))
  })

/** A guardrail at an address, as control would have stored it. */
const registered = (entry: {
  readonly name: string
  readonly modes?: ReadonlyArray<string>
  readonly policy?: string
  readonly enabled?: boolean
  readonly token?: string
  readonly runtime?: object
}) =>
  configured(
    (sql) => sql`INSERT INTO guardrail_definitions
      (name, description, provider_kind, modes, failure_policy, enabled, endpoint_url, timeout_ms, sealed_token, credential_origin,
        runtime_config)
      VALUES (${entry.name}, '', 'http', ${entry.modes ?? ["pre_call", "post_call"]}, ${entry.policy ?? "fail_closed"},
        ${entry.enabled ?? true}, 'https://guard.test/check', 1500, ${entry.token ?? null}, 'https://guard.test',
        ${JSON.stringify(entry.runtime ?? {})})`
  )

/** The notice of a change is on its way through the process. */
const heard = Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 100)))
