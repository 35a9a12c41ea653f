import { assert, describe, layer } from "@effect/vitest"
import { Effect } from "effect"
import { call, hello } from "../e2e/Calls.ts"
import * as Agents from "./Agents.ts"
import { Bench, longText, objectsIn, png } from "./Bench.ts"

/** Whatever a test is about, no credential of the client's may reach the vendor. */
const claude = (key: string, prompt: string, environment?: Readonly<Record<string, string>>) =>
  Effect.gen(function* () {
    const { gateway, home, nothingLeaked } = yield* Bench
    const run = yield* Agents.claudeCode(gateway.proxy, key, home, prompt, environment)
    nothingLeaked(key)
    return run
  })

const succeeded = { path: "/v1/messages", status: 200, code: undefined }

describe.skipIf(Agents.programs === null)("Claude Code, as it comes from npm", () => {
  layer(Bench.layer, { excludeTestServices: true })((it) => {
    it.effect("prints the model's answer", () =>
      Effect.gen(function* () {
        const { agentKey, logged, play } = yield* Bench
        const key = yield* agentKey()
        yield* play({ text: "The sky is blue." })
        const run = yield* claude(key.raw, "What colour is the sky?")
        assert.deepStrictEqual([run.exit, run.stdout], [0, "The sky is blue.\n"])
        assert.deepStrictEqual(yield* logged, [succeeded])
      })
    )

    it.effect("runs a tool and sends what it found, with the model's thought and its signature as they were", () =>
      Effect.gen(function* () {
        const { agentKey, file, play, vendors } = yield* Bench
        const key = yield* agentKey()
        const path = yield* file("secret.txt", "the word is heliotrope\n")
        const thought = { text: "The file has the word.", signature: "c2lnbmVkIGJ5IHRoZSB2ZW5kb3I=" }
        yield* play(
          { thought, text: "I look.", call: { tool: "Read", input: { file_path: path } } },
          { text: "Found." }
        )
        const run = yield* claude(key.raw, "What is the word in secret.txt?")
        assert.deepStrictEqual([run.exit, run.stdout], [0, "Found.\n"])
        const [asked, told] = vendors.requests()
        assert.notInclude(asked?.text, "heliotrope")
        const sent = objectsIn(told?.body)
        assert.match(
          JSON.stringify(sent.filter(({ type }) => type === "tool_result")),
          /^\[\{[^[]*the word is heliotrope/
        )
        assert.deepStrictEqual(
          sent.filter(({ type }) => type === "thinking"),
          [{ type: "thinking", thinking: thought.text, signature: thought.signature }]
        )
      })
    )

    it.effect("marks what the vendor may cache, and the cached tokens are in the usage record", () =>
      Effect.gen(function* () {
        const { agentKey, play, recorded, vendors } = yield* Bench
        const key = yield* agentKey()
        yield* play({ text: "Yes.", usage: { input: 7, cacheRead: 20_000, cacheWrite: 300, output: 40 } })
        yield* claude(key.raw, "Is it cached?")
        const [request] = vendors.requests()
        assert.isTrue(objectsIn(request?.body["system"]).some((block) => "cache_control" in block))
        assert.isTrue(objectsIn(request?.body["messages"]).some((block) => "cache_control" in block))
        assert.deepStrictEqual(yield* recorded(key, 1), [
          {
            status_code: 200,
            input_tokens: 20_307,
            cached_input_tokens: 20_000,
            cache_write_tokens: 300,
            output_tokens: 40
          }
        ])
      })
    )

    it.effect("sends a picture that the model asks to see", () =>
      Effect.gen(function* () {
        const { agentKey, file, play, vendors } = yield* Bench
        const key = yield* agentKey()
        const path = yield* file("dot.png", png)
        yield* play({ call: { tool: "Read", input: { file_path: path } } }, { text: "A dot." })
        const run = yield* claude(key.raw, "What is in dot.png?")
        assert.strictEqual(run.stdout, "A dot.\n")
        assert.deepInclude(
          objectsIn(vendors.requests()[1]?.body).find(({ type }) => type === "image"),
          { source: { type: "base64", media_type: "image/png", data: Buffer.from(png).toString("base64") } }
        )
      })
    )

    it.effect("prints an answer of 20,000 words whole", () =>
      Effect.gen(function* () {
        const { agentKey, play } = yield* Bench
        const key = yield* agentKey()
        yield* play({ text: longText })
        const run = yield* claude(key.raw, "Tell me everything.")
        assert.strictEqual(run.exit, 0)
        assert.isTrue(run.stdout === `${longText}\n`, "an answer was cut or changed")
      })
    )

    it.effect("shows that its key was revoked, and does not try again", () =>
      Effect.gen(function* () {
        const { agentKey, gateway, logged, play, vendors } = yield* Bench
        const key = yield* agentKey()
        yield* Effect.promise(() => gateway.operate("POST", `/keys/${key.id}/revoke`))
        yield* play({ text: "Never." })
        const run = yield* claude(key.raw, "Are you there?")
        assert.strictEqual(run.exit, 1)
        assert.include(run.output, "The gateway key was revoked; ask for a new one.")
        assert.deepStrictEqual(yield* logged, [{ path: "/v1/messages", status: 401, code: "revoked_virtual_key" }])
        assert.deepStrictEqual(vendors.requests(), [])
      })
    )

    it.effect("waits as long as a vendor's 429 says, and then answers", () =>
      Effect.gen(function* () {
        const { agentKey, logged, play } = yield* Bench
        const key = yield* agentKey()
        const slowDown = { status: 429, headers: { "retry-after": "1" }, message: "Slow down." }
        yield* play(slowDown, { text: "After the wait." })
        const run = yield* claude(key.raw, "Are you there?")
        assert.deepStrictEqual([run.exit, run.stdout], [0, "After the wait.\n"])
        assert.deepStrictEqual(yield* logged, [{ ...succeeded, status: 429 }, succeeded])
      })
    )

    it.effect("shows that a request can never fit a limit, and does not try again", () =>
      Effect.gen(function* () {
        const { agentKey, logged, play } = yield* Bench
        const key = yield* agentKey({ max_tokens_per_day: 100 })
        yield* play({ text: "Never." })
        const run = yield* claude(key.raw, "Are you there?")
        assert.strictEqual(run.exit, 1)
        assert.match(run.output, /which can never fit max_tokens_per_day of this key \(100 tokens a day\)/)
        assert.deepStrictEqual(
          (yield* logged).map(({ code }) => code),
          ["token_rate_limit_exceeded"]
        )
      })
    )

    it.effect("shows that its budget is spent until tomorrow, and does not try again", () =>
      Effect.gen(function* () {
        const { agentKey, gateway, logged, play } = yield* Bench
        const key = yield* agentKey({ daily_budget_usd: 0.01 })
        yield* play({ text: "Never." })
        const body = { model: "m", max_tokens: 16, messages: hello }
        assert.strictEqual((yield* call(gateway, "/v1/messages", key.raw, { body })).status, 200)
        const run = yield* claude(key.raw, "Are you there?")
        assert.strictEqual(run.exit, 1)
        assert.match(run.output, /The request would exceed daily_budget_usd of this key/)
        assert.deepStrictEqual(
          (yield* logged).map(({ code }) => code),
          [undefined, "budget_exceeded"]
        )
      })
    )

    it.effect("may send the gateway key as x-api-key, and the bearer that comes with it reaches nobody", () =>
      Effect.gen(function* () {
        const { agentKey, play, vendors } = yield* Bench
        const key = yield* agentKey()
        yield* play({ text: "Yes." })
        const foreign = "sk-ant-oat01-of-somebody-else"
        const run = yield* claude(foreign, "Are you there?", { ANTHROPIC_API_KEY: key.raw })
        assert.deepStrictEqual([run.exit, run.stdout], [0, "Yes.\n"])
        assert.lengthOf(vendors.requests(), 1)
      })
    )
  })
})
