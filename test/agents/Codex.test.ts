import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import { call } from "../e2e/Calls.ts"
import * as Agents from "./Agents.ts"
import { Bench, longText, objectsIn, png } from "./Bench.ts"

/** Whatever a test is about, no credential of the client's may reach the vendor. */
const codex = (key: string, prompt: string, ...flags: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const { gateway, home, nothingLeaked } = yield* Bench
    const run = yield* Agents.codex(gateway.proxy, key, home, prompt, flags)
    nothingLeaked(key)
    return run
  })

const succeeded = { path: "/v1/responses", status: 200, code: undefined }

describe.skipIf(Agents.programs === null)("Codex CLI, as it comes from npm", () => {
  layer(Bench.layer, { excludeTestServices: true })((it) => {
    it.effect("prints the model's answer", () =>
      Effect.gen(function* () {
        const { agentKey, logged, play } = yield* Bench
        const key = yield* agentKey()
        yield* play({ text: "The sky is blue." })
        const run = yield* codex(key.raw, "What colour is the sky?")
        assert.deepStrictEqual([run.exit, run.stdout], [0, "The sky is blue.\n"])
        assert.deepStrictEqual(yield* logged, [succeeded])
      })
    )

    it.effect("runs a custom tool and sends what it found, with the model's encrypted reasoning as it was", () =>
      Effect.gen(function* () {
        const { agentKey, file, play, vendors } = yield* Bench
        const key = yield* agentKey()
        yield* file("secret.txt", "the word is heliotrope\n")
        const thought = { text: "The file has the word.", signature: "ZW5jcnlwdGVkIGJ5IHRoZSB2ZW5kb3I=" }
        const input = `text(await tools.exec_command({ cmd: "cat secret.txt" }))`
        yield* play({ thought, call: { tool: "exec", input } }, { text: "Found." })
        const run = yield* codex(key.raw, "What is the word in secret.txt?")
        assert.deepStrictEqual([run.exit, run.stdout], [0, "Found.\n"])
        const [asked, told] = vendors.requests()
        assert.notInclude(asked?.text, "heliotrope")
        const sent = objectsIn(told?.body)
        const result = sent.find(({ type }) => type === "custom_tool_call_output")
        assert.include(JSON.stringify(result), "the word is heliotrope")
        assert.deepInclude(
          sent.find(({ type }) => type === "reasoning"),
          { summary: [{ type: "summary_text", text: thought.text }], encrypted_content: thought.signature }
        )
      })
    )

    it.effect("runs a function and sends what it found", () =>
      Effect.gen(function* () {
        const { agentKey, file, play, vendors } = yield* Bench
        const key = yield* agentKey()
        yield* file("secret.txt", "the word is heliotrope\n")
        yield* play({ call: { tool: "exec_command", input: { cmd: "cat secret.txt" } } }, { text: "Found." })
        // a model that Codex does not know has functions in the place of the custom tool
        const run = yield* codex(key.raw, "What is the word in secret.txt?", "--model", "some-other-model")
        assert.deepStrictEqual([run.exit, run.stdout], [0, "Found.\n"])
        const result = objectsIn(vendors.requests()[1]?.body).find(({ type }) => type === "function_call_output")
        assert.include(JSON.stringify(result), "the word is heliotrope")
      })
    )

    it.effect("names its prompt for the vendor's cache, and the cached tokens are in the usage record", () =>
      Effect.gen(function* () {
        const { agentKey, play, recorded, vendors } = yield* Bench
        const key = yield* agentKey()
        yield* play({ text: "Yes.", usage: { input: 7, cacheRead: 20_000, cacheWrite: 0, output: 40 } })
        yield* codex(key.raw, "Is it cached?")
        assert.isString(vendors.requests()[0]?.body["prompt_cache_key"])
        const [record] = yield* recorded(key, 1)
        assert.deepInclude(record, { input_tokens: 20_007, cached_input_tokens: 20_000, output_tokens: 40 })
      })
    )

    it.effect("sends a picture that comes with the prompt", () =>
      Effect.gen(function* () {
        const { agentKey, file, play, vendors } = yield* Bench
        const key = yield* agentKey()
        const path = yield* file("dot.png", png)
        yield* play({ text: "A dot." })
        const run = yield* codex(key.raw, "What is in the picture?", "--image", path)
        assert.strictEqual(run.stdout, "A dot.\n")
        assert.deepInclude(
          objectsIn(vendors.requests()[0]?.body).find(({ type }) => type === "input_image"),
          { image_url: `data:image/png;base64,${Buffer.from(png).toString("base64")}` }
        )
      })
    )

    it.effect("prints an answer of 20,000 words whole", () =>
      Effect.gen(function* () {
        const { agentKey, play } = yield* Bench
        const key = yield* agentKey()
        yield* play({ text: longText })
        const run = yield* codex(key.raw, "Tell me everything.")
        assert.strictEqual(run.exit, 0)
        assert.isTrue(run.stdout === `${longText}\n`, "an answer was cut or changed")
      })
    )

    it.effect("shows that its key was revoked, when it has tried again as often as its settings say", () =>
      Effect.gen(function* () {
        const { agentKey, gateway, logged, play, vendors } = yield* Bench
        const key = yield* agentKey()
        yield* Effect.promise(() => gateway.operate("POST", `/keys/${key.id}/revoke`))
        yield* play({ text: "Never." })
        const run = yield* codex(key.raw, "Are you there?")
        assert.strictEqual(run.exit, 1)
        assert.include(run.output, "The gateway key was revoked; ask for a new one.")
        const refused = { path: "/v1/responses", status: 401, code: "revoked_virtual_key" }
        assert.deepStrictEqual(yield* logged, Array(3).fill(refused))
        assert.deepStrictEqual(vendors.requests(), [])
      })
    )

    it.effect("waits as long as a vendor's 429 says, and then answers", () =>
      Effect.gen(function* () {
        const { agentKey, logged, play } = yield* Bench
        const key = yield* agentKey()
        const slowDown = { status: 429, headers: { "retry-after": "1" }, message: "Slow down." }
        yield* play(slowDown, { text: "After the wait." })
        const run = yield* codex(key.raw, "Are you there?")
        assert.deepStrictEqual([run.exit, run.stdout], [0, "After the wait.\n"])
        assert.deepStrictEqual(yield* logged, [{ ...succeeded, status: 429 }, succeeded])
      })
    )

    it.effect("ends at once where a request can never fit a limit, with the id to look for", () =>
      Effect.gen(function* () {
        const { agentKey, gateway, logged, play } = yield* Bench
        const key = yield* agentKey({ max_tokens_per_day: 100 })
        yield* play({ text: "Never." })
        const run = yield* codex(key.raw, "Are you there?")
        assert.strictEqual(run.exit, 1)
        // of a 429, Codex shows no text
        const [, requestId] = /last status: 429 Too Many Requests, request id: ([\w-]+)/.exec(run.output) ?? []
        assert.deepStrictEqual(
          (yield* logged).map(({ code }) => code),
          ["token_rate_limit_exceeded"]
        )
        assert.isTrue(gateway.output().includes(`"request_id":"${requestId}"`), "the log has the id that Codex shows")
      })
    )

    it.effect("shows that its budget is spent until tomorrow, instead of waiting for that", () =>
      Effect.gen(function* () {
        const { agentKey, gateway, logged, play } = yield* Bench
        const key = yield* agentKey({ daily_budget_usd: 0.01 })
        yield* play({ text: "Never." })
        const body = { model: "m", input: "hello" }
        assert.strictEqual((yield* call(gateway, "/v1/responses", key.raw, { body })).status, 200)
        const run = yield* codex(key.raw, "Are you there?")
        assert.strictEqual(run.exit, 1)
        assert.match(run.output, /The request would exceed daily_budget_usd of this key/)
        assert.deepStrictEqual(
          (yield* logged).map(({ code }) => code),
          [undefined, ...Array(3).fill("budget_exceeded")]
        )
      })
    )
  })
})
