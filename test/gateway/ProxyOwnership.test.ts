import { assert, it as check, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import { referencedObjects, useOf } from "../../src/policy/routes/UpstreamObjects.ts"
import { Database } from "../../src/services/Database.ts"
import * as Changes from "../../src/state/Changes.ts"
import * as Proxy from "./Proxy.ts"
import type { ClientRequest } from "./RecordingWire.ts"
import * as Upstream from "./ScriptedUpstream.ts"

const batches = "/v1/messages/batches"

/** Answers with an object of this id to whoever creates or reads one, and with a list to whoever lists. */
const upstream =
  (id: string, listed: ReadonlyArray<string> = []): Upstream.Script =>
  (sink, request) =>
    Upstream.json(
      request.method === "GET" && /^\/v1\/(?:messages\/batches|files)(?:\?|$)/.test(request.target)
        ? { data: listed.map((id) => ({ id })), has_more: true, first_id: listed[0], last_id: listed.at(-1) }
        : { id, secret: "of alice" }
    )(sink, request)

type Gateway = Effect.Success<ReturnType<typeof Proxy.make>>

const asking =
  (gateway: Gateway) => (key: Proxy.IssuedKey, method: string, target: string, body?: ClientRequest["body"]) =>
    gateway.ask({
      method,
      target,
      headers: body === undefined ? key.headers : [...key.headers, ...chunked],
      ...(body === undefined ? {} : { body })
    })

const chunked = ["transfer-encoding", "chunked"]

const setOwnership = (ownership: string) =>
  Effect.gen(function* () {
    const { sql, transaction } = yield* Database
    yield* transaction(
      Effect.all([
        sql`UPDATE canonical_routes SET ownership = ${ownership}`,
        sql`UPDATE upstream_passthrough_settings SET enabled = true, ownership = ${ownership},
          allowed_methods = '{GET,POST,DELETE,PUT}'`,
        Changes.publish({ _tag: "Configuration" })
      ])
    )
  })

const project = setOwnership("project")

layer(Proxy.database)("objects at the upstream", (it) => {
  it.effect.each([
    ["a message batch", batches, "msgbatch_1", ["", "/results", "?a=b"]],
    ["a response", "/v1/responses", "resp_1", ["", "/input_items"]],
    ["a file", "/v1/files", "file-1", ["", "/content"]],
    ["a batch of the first family", "/v1/batches", "batch_1", [""]],
    ["a video", "/v1/videos", "video_1", ["/content"]]
  ] as const)("are its creator's: %s", ([, path, id, below]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: project, upstream: upstream(id) })
      const [alice, bob] = [yield* Proxy.issueKey({}, { project: true }), yield* Proxy.issueKey({}, { project: true })]
      const ask = asking(gateway)
      assert.strictEqual((yield* ask(alice, "POST", path, { model: "m" })).status, 200)
      const sent = gateway.sent.length
      for (const rest of below) {
        const refused = yield* ask(bob, "GET", `${path}/${id}${rest}`)
        assert.deepStrictEqual([refused.status, codeOf(refused.text)], [404, "object_not_found"], rest)
      }
      const cancelled = yield* ask(bob, "POST", `${path}/${id}/cancel`)
      assert.strictEqual(cancelled.status, 404)
      assert.lengthOf(gateway.sent, sent)
      for (const rest of below) assert.strictEqual((yield* ask(alice, "GET", `${path}/${id}${rest}`)).status, 200, rest)
      assert.strictEqual((yield* ask(alice, "POST", `${path}/${id}/cancel`)).status, 200)
      const unknown = yield* ask(alice, "GET", `${path}/other_2`)
      assert.strictEqual(unknown.status, 404)
    })
  )

  it.effect("a refusal has the shape of the caller's protocol", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: project })
      const wire = yield* asking(gateway)(yield* Proxy.issueKey(), "GET", `${batches}/msgbatch_9`)
      assert.deepInclude(JSON.parse(wire.text), { type: "error" })
      assert.deepInclude(JSON.parse(wire.text).error, { type: "not_found_error", code: "object_not_found" })
    })
  )

  it.effect.each([
    ["project", 200, 404, 404],
    ["key", 404, 404, 404],
    ["shared", 200, 200, 200]
  ] as const)("ownership %s decides who else may use them", ([ownership, sibling, stranger, unowned]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: setOwnership(ownership), upstream: upstream("msgbatch_1") })
      const ask = asking(gateway)
      const alice = yield* Proxy.issueKey({}, { project: true })
      const colleague = yield* Proxy.issueKey()
      const { sql } = yield* Database
      yield* sql`UPDATE api_keys SET project_id = ${alice.projectId}, owner_type = 'project' WHERE id = ${colleague.id}`
      yield* ask(alice, "POST", batches, { requests: [] })
      const statuses = yield* Effect.forEach(
        [colleague, yield* Proxy.issueKey({}, { project: true }), yield* Proxy.issueKey()],
        (key) => Effect.map(ask(key, "GET", `${batches}/msgbatch_1/results`), ({ status }) => status)
      )
      assert.deepStrictEqual(statuses, [sibling, stranger, unowned])
    })
  )

  it.effect("lists are filtered, and go on where the upstream's go on", () =>
    Effect.gen(function* () {
      const listed = ["msgbatch_2", "msgbatch_1", "msgbatch_0"]
      const gateway = yield* Proxy.make({ configured: project, upstream: upstream("msgbatch_1", listed) })
      const [alice, bob] = [yield* Proxy.issueKey(), yield* Proxy.issueKey()]
      const ask = asking(gateway)
      yield* ask(alice, "POST", batches, { requests: [] })
      const own = yield* ask(alice, "GET", `${batches}?limit=3`)
      assert.deepStrictEqual(JSON.parse(own.text), {
        data: [{ id: "msgbatch_1" }],
        has_more: true,
        first_id: "msgbatch_1",
        last_id: "msgbatch_0"
      })
      assert.strictEqual(own.header("content-length"), String(Buffer.byteLength(own.text)))
      assert.deepStrictEqual(JSON.parse((yield* ask(bob, "GET", batches)).text).data, [])
      assert.deepStrictEqual(JSON.parse((yield* ask(bob, "GET", "/v1/files")).text).data, [])
    })
  )

  it.effect("a list that cannot be read is shown to nobody, and an upstream's refusal passes", () =>
    Effect.gen(function* () {
      const ask = Effect.fnUntraced(function* (script: Upstream.Script) {
        const gateway = yield* Proxy.make({ configured: project, upstream: script })
        const wire = yield* asking(gateway)(yield* Proxy.issueKey(), "GET", batches)
        return [wire.status, wire.text.includes("alice")]
      })
      assert.deepStrictEqual(yield* ask(Upstream.json({ items: ["alice"] })), [502, false])
      assert.deepStrictEqual(yield* ask(Upstream.answers(200, ["content-type", "text/plain"], "alice")), [502, false])
      assert.deepStrictEqual(yield* ask(Upstream.json({ error: { message: "alice" } }, 429)), [429, true])
    })
  )

  it.effect("a stream's response is its creator's when its first event has passed", () =>
    Effect.gen(function* () {
      const events = 'event: response.created\ndata: {"type":"response.created","response":{"id":"resp_7"}}\n\n'
      const gateway = yield* Proxy.make({
        configured: project,
        upstream: (sink, request) =>
          (request.method === "POST"
            ? Upstream.answers(200, ["content-type", "text/event-stream"], events)
            : Upstream.json({ id: "resp_7" }))(sink, request)
      })
      const ask = asking(gateway)
      const [alice, bob] = [yield* Proxy.issueKey(), yield* Proxy.issueKey()]
      yield* ask(alice, "POST", "/v1/responses", { model: "m", stream: true })
      assert.strictEqual((yield* ask(alice, "GET", "/v1/responses/resp_7")).status, 200)
      assert.strictEqual((yield* ask(bob, "GET", "/v1/responses/resp_7")).status, 404)
    })
  )

  it.effect.each([true, false])("an answer makes no more than 1,024 objects known (stream: %s)", (stream) =>
    Effect.gen(function* () {
      const items = Array.from({ length: 3_000 }, (_, index) => ({ id: `item_${index}` }))
      const named = items.map((item) => `data: ${JSON.stringify({ type: "response.output_item.added", item })}\n\n`)
      const gateway = yield* Proxy.make({
        configured: project,
        upstream: stream
          ? Upstream.events('data: {"type":"response.created","response":{"id":"resp_7"}}\n\n', ...named)
          : Upstream.json({ id: "resp_7", output: items })
      })
      const key = yield* Proxy.issueKey()
      const wire = yield* asking(gateway)(key, "POST", "/v1/responses", { model: "m", stream })
      assert.strictEqual(wire.ending, "whole")
      assert.lengthOf((yield* gateway.records)[0]?.objects ?? [], 1_024)
    })
  )

  it.effect.each([
    ["/v1/responses", { model: "m", previous_response_id: "resp_1" }],
    ["/v1/responses", { model: "m", conversation: { id: "resp_1" } }],
    ["/v1/responses", { model: "m", input: [{ role: "user", content: [{ type: "input_file", file_id: "resp_1" }] }] }],
    ["/v1/responses", '{"model":"m","input":[{"file\\u005fid":"resp_1"}]}'],
    ["/v1/responses", { model: "m", tools: [{ type: "file_search", vector_store_ids: ["resp_1"] }] }],
    [Proxy.chat, { model: "m", messages: [{ content: [{ type: "file", file: { file_id: "resp_1" } }] }] }],
    [Proxy.messages, { model: "m", container: "resp_1" }],
    ["/v1/responses", { model: "m", input: [{ type: "item_reference", id: "resp_1" }] }],
    ["/v1/responses", { model: "m", input: [{ id: "resp_1" }] }],
    ["/v1/responses", { model: "m", input: [{ type: null, id: "resp_1" }] }],
    ["/v1/responses", { model: "m", extra_body: { input: [{ id: "resp_1" }] } }],
    ["/v1/responses", '{"model":"m","input":[{"type":"item\\u005freference","id":"resp_1"}]}'],
    [Proxy.chat, { model: "m", messages: [{ role: "assistant", audio: { id: "resp_1" } }] }],
    ["/providers/compat/v1/responses", { model: "m", previous_response_id: "resp_1" }]
  ] as const)("a body may name only what its key may use: %s %j", ([target, body]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: project })
      const wire = yield* asking(gateway)(yield* Proxy.issueKey(), "POST", target, body)
      assert.deepStrictEqual([wire.status, codeOf(wire.text), gateway.sent], [404, "object_not_found", []])
    })
  )

  it.effect.each([
    ["/v1/batches", { input_file_id: "file-1", endpoint: "/v1/chat/completions" }],
    ["/v1/batches", '{"input_file_id":"mine","input_file_id":"file-1"}'],
    ["/v1/fine_tuning/jobs", { model: "m", training_file: "file-1" }],
    ["/v1/assistants", { model: "m", tool_resources: { code_interpreter: { file_ids: ["file-1"] } } }],
    ["/v1/vector_stores", { file_ids: ["file-1"] }],
    ["/v1/containers", { name: "c", file_ids: ["file-1"] }],
    ["/v1/threads", { messages: [{ content: "c", attachments: [{ file_id: "file-1" }] }] }]
  ] as const)("a body that passes the wildcard may name only what its key may use: %s %j", ([target, body]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: project, upstream: upstream("file-1") })
      const ask = asking(gateway)
      const [alice, bob] = [yield* Proxy.issueKey(), yield* Proxy.issueKey()]
      yield* ask(alice, "POST", "/v1/files", { purpose: "batch" })
      const sent = gateway.sent.length
      const foreign = yield* ask(bob, "POST", target, body)
      const twice = typeof body === "string"
      assert.deepStrictEqual(
        [foreign.status, codeOf(foreign.text)],
        twice ? [400, "invalid_request_body"] : [404, "object_not_found"]
      )
      assert.lengthOf(gateway.sent, sent)
      if (twice) return
      assert.strictEqual((yield* ask(alice, "POST", target, body)).status, 200)
      assert.strictEqual(gateway.sent.at(-1)?.text, JSON.stringify(body))
      yield* gateway.redisGoes
      assert.strictEqual((yield* ask(alice, "POST", target, body)).status, 503)
      yield* gateway.redisReturns
    })
  )

  it.effect("a run below one's own thread names no other's assistant", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: project, upstream: upstream("thread_1") })
      const ask = asking(gateway)
      const alice = yield* Proxy.issueKey()
      yield* ask(alice, "POST", "/v1/threads", {})
      const run = yield* ask(alice, "POST", "/v1/threads/thread_1/runs", { assistant_id: "asst_2" })
      assert.deepStrictEqual([run.status, codeOf(run.text)], [404, "object_not_found"])
    })
  )

  it.effect.each([
    ["/v1/batches", "text/plain", [], 415],
    ["/v1/batches", "multipart/form-data; boundary=b", [], 415],
    ["/v1/batches", "application/json", ["content-encoding", "gzip"], 415],
    ["/v1/files", "multipart/form-data; boundary=b", [], 200],
    ["/v1/files", "application/octet-stream", [], 415],
    ["/v1/audio/speech", "text/plain", [], 404]
  ] as const)(
    "where objects are kept, a body that cannot be read goes nowhere: %s %s %j",
    ([target, type, more, status]) =>
      Effect.gen(function* () {
        const gateway = yield* Proxy.make({ configured: project, upstream: upstream("file-1") })
        const key = yield* Proxy.issueKey()
        const wire = yield* gateway.ask({
          method: "POST",
          target,
          headers: [...key.headers, ...chunked, "content-type", type, ...more],
          body: '{"input_file_id":"file-2"}'
        })
        assert.strictEqual(wire.status, status)
        assert.lengthOf(gateway.sent, status === 200 ? 1 : 0)
      })
  )

  it.effect.each<[what: string, target: string, headers: ReadonlyArray<string>, body: ClientRequest["body"]]>([
    ["in JSON", "/v1/images/edits", [], { images: [{ file_id: "file-1" }] }],
    ["in JSON that is called text", "/v1/ocr", ["content-type", "text/plain"], { document: { file_id: "file-1" } }],
    ["in a form", "/v1/ocr", ["content-type", "application/x-www-form-urlencoded"], "file_id=file-1"],
    ["in a list", "/v1/ocr", [], [{ file_id: "file-1" }]],
    ["by another provider's path", "/v1/fine-tunes", [], { training_file: "file-1" }]
  ])("no path of the wildcard takes a body that names another's file: %s", ([, target, headers, body]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: project, upstream: upstream("file-1") })
      const [alice, bob] = [yield* Proxy.issueKey({}, { project: true }), yield* Proxy.issueKey({}, { project: true })]
      yield* asking(gateway)(alice, "POST", "/v1/files", { purpose: "vision" })
      const ask = (key: Proxy.IssuedKey) =>
        gateway.ask({
          target,
          headers: [...key.headers, ...chunked, ...headers],
          ...(body === undefined ? {} : { body })
        })
      const refused = yield* ask(bob)
      assert.deepStrictEqual([refused.status, codeOf(refused.text)], [404, "object_not_found"])
      assert.lengthOf(gateway.sent, 1)
      assert.strictEqual((yield* ask(alice)).status, 200)
    })
  )

  it.effect.each([
    ["what is no JSON", [], "RIFF....WAVE"],
    ["a form with files", ["content-type", "multipart/form-data; boundary=b"], '{"file_id":'],
    ["a list", [], "[1]"]
  ] as const)("a path of the wildcard that keeps no objects takes %s", ([, headers, body]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: project })
      const key = yield* Proxy.issueKey()
      const target = "/v1/audio/transcriptions"
      const wire = yield* gateway.ask({ target, headers: [...key.headers, ...chunked, ...headers], body })
      assert.deepStrictEqual([wire.status, gateway.sent[0]?.text], [200, body])
    })
  )

  it.effect("lists of other providers' names for jobs are filtered", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: project, upstream: Upstream.json({ data: [{ id: "ft-1" }] }) })
      const key = yield* Proxy.issueKey()
      for (const path of ["/v1/fine-tunes", "/v1/fine_tunes", "/v1/fine-tuning/jobs", "/v1/batch/jobs"]) {
        const listed = yield* asking(gateway)(key, "GET", path)
        assert.deepStrictEqual(JSON.parse(listed.text), { data: [] }, path)
      }
    })
  )

  it.effect("a body that passes the wildcard is not read where every key may use every object", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: setOwnership("shared") })
      const key = yield* Proxy.issueKey()
      const wire = yield* asking(gateway)(key, "POST", "/v1/batches", '{"input_file_id":"file-1"')
      assert.strictEqual(wire.status, 200)
    })
  )

  it.effect.each([
    ["as it comes", {}],
    ["behind a guardrail", { mandatory_guardrails: ["pii-redact"] }]
  ] as const)("what an answer makes known is read however it is cut, %s", ([, guardrails]) =>
    Effect.gen(function* () {
      const text = JSON.stringify({
        id: "resp_3",
        output: [{ id: "rs_3" }],
        usage: { input_tokens: 2, output_tokens: 3 }
      })
      const gateway = yield* Proxy.make({
        configured: project,
        upstream: Upstream.answers(200, ["content-type", "application/json"], ...text)
      })
      const ask = asking(gateway)
      const key = yield* Proxy.issueKey({}, { guardrails })
      const wire = yield* ask(key, "POST", "/v1/responses", { model: "m" })
      assert.deepStrictEqual(JSON.parse(wire.text), JSON.parse(text))
      assert.deepInclude((yield* gateway.records)[0], { total_tokens: 5, usage_source: "reported" })
      const next = { model: "m", previous_response_id: "resp_3", input: [{ type: "item_reference", id: "rs_3" }] }
      assert.strictEqual((yield* ask(key, "POST", "/v1/responses", next)).status, 200)
    })
  )

  it.effect("a body may name what its key created", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: project, upstream: upstream("resp_1") })
      const key = yield* Proxy.issueKey()
      const ask = asking(gateway)
      yield* ask(key, "POST", "/v1/responses", { model: "m" })
      const next = yield* ask(key, "POST", "/v1/responses", { model: "m", previous_response_id: "resp_1" })
      assert.strictEqual(next.status, 200)
    })
  )

  const items = (n: number) => [
    { type: "reasoning", id: `rs_${n}` },
    { type: "message", id: `msg_${n}`, role: "assistant" }
  ]
  const itemEvents = [
    { type: "response.created", response: { id: "resp_2", output: [] } },
    ...items(2).map((item) => ({ type: "response.output_item.added", item })),
    { type: "response.output_text.delta", item_id: "msg_2", delta: "x" }
  ]

  it.effect.each([
    [1, "application/json", JSON.stringify({ id: "resp_1", output: items(1) })],
    [2, "text/event-stream", itemEvents.map((one) => `data: ${JSON.stringify(one)}\n\n`).join("")]
  ] as const)("the items of a response are its creator's: %s, %s", ([n, type, text]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        configured: project,
        upstream: Upstream.answers(200, ["content-type", type], text)
      })
      const ask = asking(gateway)
      const [alice, bob] = [yield* Proxy.issueKey(), yield* Proxy.issueKey()]
      yield* ask(alice, "POST", "/v1/responses", { model: "m" })
      const input = [{ type: "item_reference", id: `rs_${n}` }, { id: `msg_${n}` }]
      assert.strictEqual((yield* ask(bob, "POST", "/v1/responses", { model: "m", input })).status, 404)
      assert.strictEqual((yield* ask(alice, "POST", "/v1/responses", { model: "m", input })).status, 200)
      yield* ask(bob, "POST", "/v1/responses", { model: "m", store: false })
      assert.strictEqual((yield* ask(bob, "POST", "/v1/responses", { model: "m", input })).status, 404)
      yield* gateway.written
      const { sql } = yield* Database
      const rows = yield* sql`SELECT id FROM upstream_objects WHERE kind = 'item' AND key_id = ${alice.id} ORDER BY id`
      assert.deepStrictEqual(rows, [{ id: `msg_${n}` }, { id: `rs_${n}` }])
    })
  )

  it.effect.each(["", "/providers/compat"])(
    "the items that are added to a conversation are their creator's: %s",
    (at) =>
      Effect.gen(function* () {
        const data = [{ id: "msg_new" }, { id: "msg_chosen" }]
        const gateway = yield* Proxy.make({
          configured: project,
          upstream: Upstream.json({ id: "conv_1", object: "list", data })
        })
        const ask = asking(gateway)
        const [alice, bob] = [yield* Proxy.issueKey(), yield* Proxy.issueKey()]
        yield* ask(alice, "POST", `${at}/v1/conversations`, {})
        const items = [{ type: "message", role: "user", content: "x" }]
        const add = (key: Proxy.IssuedKey, chosen: string) =>
          ask(key, "POST", `${at}/v1/conversations/conv_1/items`, { items: [...items, { ...items[0], id: chosen }] })
        assert.strictEqual((yield* add(bob, "msg_chosen")).status, 404)
        assert.strictEqual((yield* add(alice, "msg_chosen")).status, 200)
        const refers = (key: Proxy.IssuedKey, id: string) =>
          Effect.map(
            ask(key, "POST", `${at}/v1/conversations/conv_1/items`, { items: [{ type: "item_reference", id }] }),
            ({ status }) => status
          )
        // whoever chose an id is not its owner for that
        assert.strictEqual(yield* refers(alice, "msg_chosen"), 404)
        assert.deepStrictEqual([yield* refers(bob, "msg_new"), yield* refers(alice, "msg_new")], [404, 200])
      })
  )

  it.effect.each([
    ["application/json", JSON.stringify({ choices: [{ message: { audio: { id: "audio_1", data: "UklG" } } }] })],
    ["text/event-stream", 'data: {"choices":[{"delta":{"audio":{"id":"audio_1"}}}]}\n\ndata: [DONE]\n\n']
  ] as const)("what a completion said aloud is its creator's, by %s", ([type, text]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        configured: project,
        upstream: Upstream.answers(200, ["content-type", type], text)
      })
      const ask = asking(gateway)
      const [alice, bob] = [yield* Proxy.issueKey(), yield* Proxy.issueKey()]
      yield* ask(alice, "POST", Proxy.chat, { model: "m", modalities: ["text", "audio"], audio: { voice: "a" } })
      const again = { model: "m", messages: [{ role: "assistant", audio: { id: "audio_1" } }] }
      assert.strictEqual((yield* ask(bob, "POST", Proxy.chat, again)).status, 404)
      assert.strictEqual((yield* ask(alice, "POST", Proxy.chat, again)).status, 200)
    })
  )

  it.effect.each([
    [{ data_source: { type: "jsonl", source: { type: "file_id", id: "file-1" } } }],
    [{ data_source: { type: "completions", source: { type: "stored_completions", model: "m" } } }],
    [{ data_source: { type: "responses", source: { type: "responses" } } }],
    [{ extra_body: { data_source: { type: "logs" } } }]
  ] as const)("an evaluation reads nobody else's: %j", ([body]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: project, upstream: upstream("eval_1") })
      const ask = asking(gateway)
      const key = yield* Proxy.issueKey()
      for (const base of ["", "/providers/compat"]) {
        assert.strictEqual((yield* ask(key, "POST", `${base}/v1/evals`, { name: "e" })).status, 200)
        const wire = yield* ask(key, "POST", `${base}/v1/evals/eval_1/runs`, body)
        assert.deepStrictEqual([wire.status, codeOf(wire.text)], [404, "object_not_found"])
      }
      assert.lengthOf(gateway.sent, 2)
    })
  )

  const formOf = (field: string, name: string) =>
    ["--b", `content-disposition: form-data; name="${name}"`, "", field, "--b--", ""].join("\r\n")

  it.effect("a form on the wildcard names no other's object", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: project, upstream: upstream("cntr_1") })
      const [alice, bob] = [yield* Proxy.issueKey(), yield* Proxy.issueKey()]
      const ask = (key: Proxy.IssuedKey, target: string, body: string) =>
        gateway.ask({
          target,
          headers: [...key.headers, ...chunked, "content-type", "multipart/form-data; boundary=b"],
          body
        })
      yield* asking(gateway)(alice, "POST", "/v1/containers", { name: "c" })
      yield* asking(gateway)(bob, "POST", "/v1/files", {})
      const files = "/v1/containers/cntr_1/files"
      const foreign = yield* ask(alice, files, formOf("file-9", "file_id"))
      assert.deepStrictEqual([foreign.status, codeOf(foreign.text)], [404, "object_not_found"])
      assert.strictEqual((yield* ask(alice, files, formOf("file-9", "file_id[]"))).status, 400)
      assert.strictEqual((yield* ask(alice, files, formOf("x", "note"))).status, 200)
      assert.strictEqual(gateway.sent.at(-1)?.text, formOf("x", "note"))
    })
  )

  it.effect("by the wildcard too, an answer is remembered where the upstream keeps it", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: project, upstream: upstream("resp_5") })
      const ask = asking(gateway)
      const key = yield* Proxy.issueKey()
      const { sql } = yield* Database
      for (const [path, body, kind, rows] of [
        ["/v1/threads/runs", { store: false }, "thread", 1],
        ["/v1/batches", { store: false }, "batch", 1]
      ] as const) {
        assert.strictEqual((yield* ask(key, "POST", path, body)).status, 200)
        yield* gateway.written
        assert.lengthOf(yield* sql`SELECT 1 FROM upstream_objects WHERE kind = ${kind} AND key_id = ${key.id}`, rows)
      }
    })
  )

  it.effect("the files that the upstream makes for a batch are its creator's", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        configured: project,
        upstream: (sink, request) =>
          Upstream.json({ id: "batch_1", ...(request.method === "GET" && { output_file_id: "file-out" }) })(
            sink,
            request
          )
      })
      const [alice, bob] = [yield* Proxy.issueKey(), yield* Proxy.issueKey()]
      const ask = asking(gateway)
      yield* ask(alice, "POST", "/v1/batches", { endpoint: "/v1/chat/completions" })
      assert.strictEqual((yield* ask(alice, "GET", "/v1/files/file-out/content")).status, 404)
      yield* ask(alice, "GET", "/v1/batches/batch_1")
      assert.strictEqual((yield* ask(alice, "GET", "/v1/files/file-out/content")).status, 200)
      assert.strictEqual((yield* ask(bob, "GET", "/v1/files/file-out/content")).status, 404)
    })
  )

  /** Answers every POST with this, and everything else with an object. */
  const answering =
    (text: string, contentType = "application/json"): Upstream.Script =>
    (sink, request) =>
      (request.method === "POST"
        ? Upstream.answers(200, ["content-type", contentType], text)
        : Upstream.json({ id: "x" }))(sink, request)

  const events = (...data: ReadonlyArray<unknown>) => data.map((one) => `data: ${JSON.stringify(one)}\n\n`).join("")
  const codeRun = { type: "bash_code_execution_tool_result", content: { content: [{ file_id: "file-out" }] } }
  const interpreted = { type: "code_interpreter_call", container_id: "box_1" }
  const stream = "text/event-stream"
  const code = { model: "m", tools: [{ type: "code" }] }

  it.effect.each([
    [Proxy.messages, JSON.stringify({ id: "msg_1", container: { id: "box_1" } }), undefined],
    [Proxy.messages, events({ type: "message_delta", delta: { container: { id: "box_1" } } }), stream],
    ["/v1/responses", JSON.stringify({ id: "resp_1", output: [interpreted] }), undefined],
    ["/v1/responses", events({ response: { id: "resp_1" } }, { item: interpreted }), stream],
    ["/providers/compat/v1/messages", JSON.stringify({ id: "msg_1", container: { id: "box_1" } }), undefined]
  ] as const)("the container that tools ran in is its creator's: %s %s", ([target, text, contentType]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: project, upstream: answering(text, contentType) })
      const [alice, bob] = [yield* Proxy.issueKey(), yield* Proxy.issueKey()]
      const ask = asking(gateway)
      const again =
        target === "/v1/responses" ? { ...code, tools: [{ container: "box_1" }] } : { ...code, container: "box_1" }
      assert.strictEqual((yield* ask(alice, "POST", target, again)).status, 404)
      assert.strictEqual((yield* ask(alice, "POST", target, code)).status, 200)
      assert.strictEqual((yield* ask(alice, "POST", target, again)).status, 200)
      assert.strictEqual((yield* ask(bob, "POST", target, again)).status, 404)
    })
  )

  it.effect("the files that code execution wrote are its creator's", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        configured: project,
        upstream: answering(JSON.stringify({ id: "msg_1", content: [codeRun] }))
      })
      const [alice, bob] = [yield* Proxy.issueKey(), yield* Proxy.issueKey()]
      const ask = asking(gateway)
      yield* ask(alice, "POST", Proxy.messages, code)
      assert.strictEqual((yield* ask(alice, "GET", "/v1/files/file-out/content")).status, 200)
      assert.strictEqual((yield* ask(bob, "GET", "/v1/files/file-out/content")).status, 404)
    })
  )

  it.effect.each([
    [{ type: "message", role: "assistant", content: [{ type: "output_text", annotations: [{ file_id: "file-1" }] }] }],
    [interpreted],
    [{ type: "file_search_call", results: [{ file_id: "file-1" }] }]
  ])("an item of an answer may come back with the next request: %j", ([item]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: project })
      const wire = yield* asking(gateway)(yield* Proxy.issueKey(), "POST", "/v1/responses", {
        model: "m",
        input: [item]
      })
      assert.strictEqual(wire.status, 200)
    })
  )

  it.effect.each([
    ["project", 404],
    ["shared", 200]
  ] as const)("the environment decides whose the compatible upstream's objects are: %s", ([ownership, other]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: project, settings: { directCompatOwnership: ownership } })
      const body = { model: "m", previous_response_id: "resp_1" }
      const wire = yield* asking(gateway)(yield* Proxy.issueKey(), "POST", "/providers/compat/v1/responses", body)
      assert.strictEqual(wire.status, other)
    })
  )

  it.effect("what a file says makes no other file its reader's", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({
        configured: project,
        upstream: (sink, request) =>
          Upstream.json(request.method === "GET" ? { output_file_id: "file-other" } : { id: "file-1" })(sink, request)
      })
      const ask = asking(gateway)
      const key = yield* Proxy.issueKey()
      yield* ask(key, "POST", "/v1/files", {})
      assert.strictEqual((yield* ask(key, "GET", "/v1/files/file-1/content")).status, 200)
      assert.strictEqual((yield* ask(key, "GET", "/v1/files/file-1")).status, 200)
      assert.strictEqual((yield* ask(key, "GET", "/v1/files/file-other")).status, 404)
    })
  )

  it.effect.each([
    [JSON.stringify({ id: "run_1", thread_id: "thread_1" }), undefined],
    [events({ id: "thread_1", object: "thread" }, { id: "run_1", thread_id: "thread_1" }), stream]
  ] as const)("a thread that is created with its run is its creator's: %s", ([text, contentType]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: project, upstream: answering(text, contentType) })
      const [alice, bob] = [yield* Proxy.issueKey(), yield* Proxy.issueKey()]
      const ask = asking(gateway)
      assert.strictEqual((yield* ask(alice, "POST", "/v1/threads/runs", { thread: {} })).status, 200)
      assert.strictEqual((yield* ask(alice, "GET", "/v1/threads/thread_1/runs/run_1")).status, 200)
      assert.strictEqual((yield* ask(bob, "GET", "/v1/threads/thread_1/runs/run_1")).status, 404)
    })
  )

  it.effect.each([
    [Proxy.chat, undefined, 404],
    [Proxy.chat, true, 200],
    ["/v1/responses", undefined, 200],
    ["/v1/responses", false, 404]
  ] as const)("an answer is remembered where the upstream keeps it: %s, store %s", ([path, store, status]) =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: project, upstream: upstream("answer_1") })
      const [alice, bob] = [yield* Proxy.issueKey(), yield* Proxy.issueKey()]
      const ask = asking(gateway)
      yield* ask(alice, "POST", path, { model: "m", ...(store === undefined ? {} : { store }) })
      assert.strictEqual((yield* ask(alice, "GET", `${path}/answer_1`)).status, status)
      assert.strictEqual((yield* ask(bob, "GET", `${path}/answer_1`)).status, 404)
      yield* gateway.written
      const { sql } = yield* Database
      const rows = yield* sql`SELECT 1 FROM upstream_objects WHERE id = 'answer_1' AND key_id = ${alice.id}`
      assert.lengthOf(rows, status === 200 ? 1 : 0)
    })
  )

  it.effect("a body may name only what its key may use, whatever it says that it is", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: project })
      const body = { model: "m", type: "tool_use", input: [{ type: "input_file", file_id: "file-9" }] }
      const wire = yield* asking(gateway)(yield* Proxy.issueKey(), "POST", "/v1/responses", body)
      assert.strictEqual(wire.status, 404)
    })
  )

  it.effect("the compatible upstream's objects are others than the model proxy's", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: project, upstream: upstream("resp_1") })
      const [alice, bob] = [yield* Proxy.issueKey(), yield* Proxy.issueKey()]
      const ask = asking(gateway)
      const compat = "/providers/compat/v1/responses"
      yield* ask(alice, "POST", compat, { model: "m" })
      assert.strictEqual((yield* ask(alice, "POST", `${compat}/resp_1/cancel`)).status, 200)
      assert.strictEqual((yield* ask(bob, "POST", `${compat}/resp_1/cancel`)).status, 404)
      assert.strictEqual((yield* ask(alice, "GET", "/v1/responses/resp_1")).status, 404)
    })
  )

  it.effect("nobody learns of an object while neither Redis nor the database can say whose it is", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: project, upstream: upstream("msgbatch_1") })
      const key = yield* Proxy.issueKey()
      const ask = asking(gateway)
      yield* ask(key, "POST", batches, { requests: [] })
      yield* gateway.redisGoes
      const wire = yield* ask(key, "GET", `${batches}/msgbatch_1`)
      assert.deepStrictEqual([wire.status, codeOf(wire.text)], [503, "control_state_unavailable"])
      yield* gateway.redisReturns
    })
  )

  it.effect("what Redis has forgotten the database knows", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: project, upstream: upstream("msgbatch_1") })
      const [alice, bob] = [yield* Proxy.issueKey(), yield* Proxy.issueKey()]
      const ask = asking(gateway)
      yield* ask(alice, "POST", batches, { requests: [] })
      yield* gateway.written
      yield* gateway.forgets("owners:upstream:message_batch:msgbatch_1")
      assert.strictEqual((yield* ask(bob, "GET", `${batches}/msgbatch_1`)).status, 404)
      assert.strictEqual((yield* ask(alice, "GET", `${batches}/msgbatch_1`)).status, 200)
    })
  )

  it.effect("what Redis has forgotten is no other's who has an answer name it", () =>
    Effect.gen(function* () {
      const named: Upstream.Script = (sink, request) =>
        Upstream.json({ id: `resp_${request.target.length}`, conversation: { id: "conv_1" } })(sink, request)
      const gateway = yield* Proxy.make({ configured: project, upstream: named })
      const [alice, bob] = [yield* Proxy.issueKey(), yield* Proxy.issueKey()]
      const ask = asking(gateway)
      yield* ask(alice, "POST", "/v1/responses", { model: "m" })
      yield* gateway.written
      yield* gateway.forgets("owners:upstream:conversation:conv_1")
      assert.strictEqual((yield* ask(bob, "POST", "/v1/responses", { model: "m" })).status, 200)
      assert.strictEqual((yield* ask(bob, "GET", "/v1/conversations/conv_1/items")).status, 404)
      assert.strictEqual((yield* ask(alice, "GET", "/v1/conversations/conv_1/items")).status, 200)
    })
  )

  it.effect("neither a form of the compatible upstream nor a query names another's object", () =>
    Effect.gen(function* () {
      const gateway = yield* Proxy.make({ configured: project, upstream: upstream("file-1") })
      const key = yield* Proxy.issueKey()
      const form = yield* gateway.ask({
        target: "/providers/compat/v1/batches",
        headers: [...key.headers, "content-type", "application/x-www-form-urlencoded", ...chunked],
        body: "endpoint=x&input_file_id=file-1"
      })
      assert.deepStrictEqual([form.status, codeOf(form.text)], [404, "object_not_found"])
      const query = yield* asking(gateway)(key, "POST", "/v1/responses?previous_response_id=resp_1", { model: "m" })
      assert.deepStrictEqual([query.status, codeOf(query.text)], [400, "invalid_request_body"])
      assert.isEmpty(gateway.sent)
    })
  )
})

describe("the use of an upstream's objects", () => {
  check.each([
    ["POST", "/v1/files", { _tag: "Create", kind: "file" }],
    ["GET", "/V1/Files/", { _tag: "List", kind: "file" }],
    ["GET", "/v1/files/File-A/content", { _tag: "Use", kind: "file", id: "File-A", below: "content" }],
    ["GET", "/v1/%66iles/x", { _tag: "Use", kind: "file", id: "x", below: "" }],
    ["GET", "/openai/v1/threads/t/runs", { _tag: "Use", kind: "thread", id: "t", below: "runs" }],
    ["POST", "/v1/threads/runs", { _tag: "Create", kind: "thread" }],
    ["GET", "/v1/openai/files/f", { _tag: "Use", kind: "file", id: "f", below: "" }],
    ["GET", "/v1/files/f/content/v1", { _tag: "Use", kind: "file", id: "f", below: "content/v1" }],
    ["GET", "/v1/threads/runs", { _tag: "Use", kind: "thread", id: "runs", below: "" }],
    ["DELETE", "/v1/files", { _tag: "Unclear" }],
    ["GET", "/v1/files%EF%BC%8Fx", { _tag: "Unclear" }],
    ["POST", "/v1/responses/input_tokens", { _tag: "BodyOnly" }],
    ["POST", "/openai/v1/chat/completions", { _tag: "Create", kind: "chat_completion" }],
    ["POST", "/v1/audio/speech", { _tag: "None" }],
    ["GET", "/v1/chat/completions/c1", { _tag: "Use", kind: "chat_completion", id: "c1", below: "" }]
  ])("%s %s", (method, path, use) => {
    assert.deepStrictEqual(useOf(method, path.slice(1).split("/")), use)
  })

  check.each([
    { messages: [{ content: [{ type: "tool_use", input: { file_id: "x" } }] }] },
    { tools: [{ type: "function", function: { parameters: { properties: { file_id: { type: "string" } } } } }] },
    { metadata: { file_id: "mine", container: "x" } },
    {
      tools: [
        { type: "code_interpreter", container: { type: "auto" } },
        { type: "x", container: "auto" }
      ]
    },
    { messages: [{ content: 'file_id and "file_id": "x"' }] }
  ])("finds no object in %j", (body) => {
    assert.deepStrictEqual(referencedObjects(JSON.stringify(body), body), [])
  })
})

const codeOf = (text: string): unknown => JSON.parse(text).error.code
