import Anthropic from "@anthropic-ai/sdk"
import { assert, describe, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import OpenAI from "openai"
import * as SimulatorServer from "./SimulatorServer.ts"

/** The official clients, straight against the simulated proxy: what they understand, applications will. */
class Clients extends Context.Service<Clients, { readonly openai: OpenAI; readonly anthropic: Anthropic }>()(
  "test/Clients"
) {}

const clients = Layer.effect(
  Clients,
  Effect.map(SimulatorServer.serve({ batchMs: 0 }), ({ origin }) =>
    Clients.of({
      openai: new OpenAI({ apiKey: "any", baseURL: `${origin}/v1`, maxRetries: 0 }),
      anthropic: new Anthropic({ apiKey: "any", baseURL: origin, maxRetries: 0 })
    })
  )
)

const weather = {
  type: "object" as const,
  properties: { city: { type: "string" }, days: { type: "integer" }, unit: { enum: ["C", "F"] } },
  required: ["city", "days", "unit"]
}
const weatherArguments = { city: "use a tool", days: 1, unit: "C" }

layer(clients)("family A", (it) => {
  describe("chat completions", () => {
    const messages = [{ role: "user" as const, content: "Grüß Gott, 世界" }]

    it.effect("plain", () =>
      Effect.gen(function* () {
        const { openai } = yield* Clients
        const answer = yield* Effect.promise(() => openai.chat.completions.create({ model: "m", messages }))
        assert.strictEqual(answer.choices[0]?.message.content, "m (simulated) heard: Grüß Gott, 世界")
        assert.strictEqual(answer.choices[0]?.finish_reason, "stop")
        assert.strictEqual(
          answer.usage?.total_tokens,
          (answer.usage?.prompt_tokens ?? 0) + (answer.usage?.completion_tokens ?? 0)
        )
        assert.strictEqual(answer.usage?.prompt_tokens_details?.cached_tokens, 0)
      })
    )

    it.effect("streamed, with usage in one more chunk", () =>
      Effect.gen(function* () {
        const { openai } = yield* Clients
        const chunks = yield* collected(() =>
          openai.chat.completions.create({
            model: "m",
            messages,
            stream: true,
            stream_options: { include_usage: true }
          })
        )
        assert.strictEqual(
          chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join(""),
          "m (simulated) heard: Grüß Gott, 世界"
        )
        assert.deepStrictEqual(new Set(chunks.slice(0, -1).map((chunk) => chunk.usage)), new Set([null]))
        assert.deepStrictEqual(chunks.at(-1)?.choices, [])
        assert.isAbove(chunks.at(-1)?.usage?.completion_tokens ?? 0, 0)
      })
    )

    it.effect("streamed, without usage unless asked", () =>
      Effect.gen(function* () {
        const { openai } = yield* Clients
        const chunks = yield* collected(() => openai.chat.completions.create({ model: "m", messages, stream: true }))
        assert.isFalse(chunks.some((chunk) => "usage" in chunk))
        assert.strictEqual(chunks.at(-1)?.choices[0]?.finish_reason, "stop")
      })
    )

    it.effect("a tool call, plain and streamed", () =>
      Effect.gen(function* () {
        const { openai } = yield* Clients
        const asked = {
          model: "m",
          messages: [{ role: "user" as const, content: "use a tool" }],
          tools: [{ type: "function" as const, function: { name: "weather", parameters: weather } }]
        }
        const plain = yield* Effect.promise(() => openai.chat.completions.create(asked))
        const streamed = yield* Effect.promise(() => openai.chat.completions.stream(asked).finalChatCompletion())
        for (const answer of [plain, streamed]) {
          const call = answer.choices[0]?.message.tool_calls?.[0]
          assert.strictEqual(answer.choices[0]?.finish_reason, "tool_calls")
          assert.strictEqual(call?.type === "function" && call.function.name, "weather")
          assert.deepStrictEqual(JSON.parse(call?.type === "function" ? call.function.arguments : ""), weatherArguments)
        }
      })
    )

    it.effect("a tool's result is answered in words", () =>
      Effect.gen(function* () {
        const { openai } = yield* Clients
        const answer = yield* Effect.promise(() =>
          openai.chat.completions.create({
            model: "m",
            messages: [
              { role: "user", content: "use a tool" },
              { role: "tool", tool_call_id: "call_1", content: "sunny, says the tool" }
            ],
            tools: [{ type: "function", function: { name: "weather" } }]
          })
        )
        assert.strictEqual(answer.choices[0]?.finish_reason, "stop")
      })
    )

    it.effect("no more tokens than asked for", () =>
      Effect.gen(function* () {
        const { openai } = yield* Clients
        const answer = yield* Effect.promise(() =>
          openai.chat.completions.create({ model: "m", messages, max_completion_tokens: 4 })
        )
        assert.strictEqual(answer.choices[0]?.finish_reason, "length")
        assert.isAtMost(answer.usage?.completion_tokens ?? 0, 4)
      })
    )
  })

  describe("responses", () => {
    it.effect("plain", () =>
      Effect.gen(function* () {
        const { openai } = yield* Clients
        const answer = yield* Effect.promise(() => openai.responses.create({ model: "m", input: "hello" }))
        assert.strictEqual(answer.output_text, "m (simulated) heard: hello")
        assert.strictEqual(answer.status, "completed")
        assert.strictEqual(answer.usage?.output_tokens_details.reasoning_tokens, 0)
      })
    )

    it.effect("streamed", () =>
      Effect.gen(function* () {
        const { openai } = yield* Clients
        const final = yield* Effect.promise(() =>
          openai.responses.stream({ model: "m", input: [{ role: "user", content: "hello" }] }).finalResponse()
        )
        assert.strictEqual(final.output_text, "m (simulated) heard: hello")
        const events = yield* collected(() => openai.responses.create({ model: "m", input: "hello", stream: true }))
        assert.strictEqual(events.at(0)?.type, "response.created")
        assert.deepStrictEqual(
          events.map((event) => event.sequence_number),
          events.map((_, i) => i)
        )
        const last = events.at(-1)
        assert.isTrue(last?.type === "response.completed" && (last.response.usage?.total_tokens ?? 0) > 0)
      })
    )

    it.effect("a tool call, plain and streamed", () =>
      Effect.gen(function* () {
        const { openai } = yield* Clients
        const asked = {
          model: "m",
          input: "use a tool",
          tools: [{ type: "function" as const, name: "weather", parameters: weather, strict: false }]
        }
        const plain = yield* Effect.promise(() => openai.responses.create(asked))
        const streamed = yield* Effect.promise(() => openai.responses.stream(asked).finalResponse())
        for (const answer of [plain, streamed]) {
          const call = answer.output[0]
          assert.isTrue(call?.type === "function_call")
          assert.deepStrictEqual(JSON.parse(call?.type === "function_call" ? call.arguments : ""), weatherArguments)
        }
      })
    )

    it.effect("incomplete when cut short by its own limit", () =>
      Effect.gen(function* () {
        const { openai } = yield* Clients
        const events = yield* collected(() =>
          openai.responses.create({ model: "m", input: "hello", stream: true, max_output_tokens: 2 })
        )
        assert.strictEqual(events.at(-1)?.type, "response.incomplete")
      })
    )

    it.effect("a reasoning model spends tokens on its thoughts", () =>
      Effect.gen(function* () {
        const { openai } = yield* Clients
        const answer = yield* Effect.promise(() =>
          openai.responses.create({ model: "simulator-reasoning", input: "long ".repeat(2_000) })
        )
        assert.strictEqual(answer.usage?.output_tokens_details.reasoning_tokens, 64)
        assert.isAbove(answer.usage?.input_tokens_details.cached_tokens ?? 0, 0)
      })
    )
  })

  describe("embeddings", () => {
    it.effect("the same vectors in both encodings", () =>
      Effect.gen(function* () {
        const { openai } = yield* Clients
        const input = ["one", "two", "one"]
        const base64 = yield* Effect.promise(() => openai.embeddings.create({ model: "m", input }))
        const float = yield* Effect.promise(() =>
          openai.embeddings.create({ model: "m", input, encoding_format: "float" })
        )
        const vectors = float.data.map((one) => [...one.embedding])
        assert.deepStrictEqual(
          base64.data.map((one) => [...one.embedding]),
          vectors
        )
        assert.deepStrictEqual(vectors[0], vectors[2])
        assert.notDeepEqual(vectors[0], vectors[1])
        assert.closeTo(Math.hypot(...(vectors[0] ?? [])), 1, 1e-6)
      })
    )

    it.effect("tokens as input, and the dimensions asked for", () =>
      Effect.gen(function* () {
        const { openai } = yield* Clients
        const answer = yield* Effect.promise(() =>
          openai.embeddings.create({ model: "m", input: [[1, 2, 3], [4]], dimensions: 8 })
        )
        assert.deepStrictEqual(
          answer.data.map((one) => one.embedding.length),
          [8, 8]
        )
        assert.strictEqual(answer.usage.prompt_tokens, 4)
      })
    )
  })

  it.effect("models", () =>
    Effect.gen(function* () {
      const { openai } = yield* Clients
      const ids = (yield* collected(() => openai.models.list())).map((model) => model.id)
      assert.include(ids, "simulator-large")
      assert.strictEqual((yield* Effect.promise(() => openai.models.retrieve("simulator-small"))).object, "model")
    })
  )

  it.effect("failures by model name are the client's own error classes", () =>
    Effect.gen(function* () {
      const { openai } = yield* Clients
      const ask = (model: string) => rejected(() => openai.responses.create({ model, input: "x" }))
      assert.instanceOf(yield* ask("simulate-400"), OpenAI.BadRequestError)
      assert.instanceOf(yield* ask("simulate-401"), OpenAI.AuthenticationError)
      assert.instanceOf(yield* ask("provider/simulate-500"), OpenAI.InternalServerError)
      const tooMany = yield* ask("simulate-429")
      assert.isTrue(tooMany instanceof OpenAI.RateLimitError && tooMany.code === "rate_limit_exceeded")
      assert.isTrue(tooMany instanceof OpenAI.RateLimitError && tooMany.headers.get("retry-after") === "1")
      assert.instanceOf(yield* ask("simulate-cut"), Error)
    })
  )

  it.effect("no credential, no model, no such path", () =>
    Effect.gen(function* () {
      const { openai } = yield* Clients
      const anonymous = openai.withOptions({ defaultHeaders: { authorization: null } })
      assert.instanceOf(yield* rejected(() => anonymous.models.list()), OpenAI.AuthenticationError)
      assert.instanceOf(
        yield* rejected(() => openai.responses.create({ input: "without a model" })),
        OpenAI.BadRequestError
      )
      assert.instanceOf(yield* rejected(() => openai.files.list()), OpenAI.NotFoundError)
      assert.instanceOf(yield* rejected(() => openai.models.retrieve("unheard-of")), OpenAI.NotFoundError)
    })
  )
})

layer(clients)("family B", (it) => {
  const asked = { model: "m", max_tokens: 100, messages: [{ role: "user" as const, content: "Grüß Gott, 世界" }] }

  describe("messages", () => {
    it.effect("plain", () =>
      Effect.gen(function* () {
        const { anthropic } = yield* Clients
        const answer = yield* Effect.promise(() => anthropic.messages.create(asked))
        const block = answer.content[0]
        assert.strictEqual(block?.type === "text" && block.text, "m (simulated) heard: Grüß Gott, 世界")
        assert.strictEqual(answer.stop_reason, "end_turn")
        assert.strictEqual(answer.usage.cache_read_input_tokens, 0)
        assert.isAbove(answer.usage.output_tokens, 0)
      })
    )

    it.effect("streamed", () =>
      Effect.gen(function* () {
        const { anthropic } = yield* Clients
        const events = yield* collected(() => anthropic.messages.create({ ...asked, stream: true }))
        const types = events.map((event) => event.type)
        assert.deepStrictEqual(types.slice(0, 2), ["message_start", "content_block_start"])
        assert.deepStrictEqual(types.slice(-3), ["content_block_stop", "message_delta", "message_stop"])
        const plain = yield* Effect.promise(() => anthropic.messages.create(asked))
        const final = yield* Effect.promise(() => anthropic.messages.stream(asked).finalMessage())
        assert.deepStrictEqual(final.content, plain.content)
        assert.deepStrictEqual(final.usage.output_tokens, plain.usage.output_tokens)
      })
    )

    it.effect("a tool call, plain and streamed; its result is answered in words", () =>
      Effect.gen(function* () {
        const { anthropic } = yield* Clients
        const tools = [{ name: "weather", input_schema: weather }]
        const question = { role: "user" as const, content: "use a tool" }
        const plain = yield* Effect.promise(() => anthropic.messages.create({ ...asked, messages: [question], tools }))
        const streamed = yield* Effect.promise(() =>
          anthropic.messages.stream({ ...asked, messages: [question], tools }).finalMessage()
        )
        for (const answer of [plain, streamed]) {
          const call = answer.content[0]
          assert.strictEqual(answer.stop_reason, "tool_use")
          assert.deepStrictEqual(call?.type === "tool_use" && call.input, weatherArguments)
        }
        const told = yield* Effect.promise(() =>
          anthropic.messages.create({
            ...asked,
            tools,
            messages: [
              question,
              { role: "assistant", content: plain.content },
              { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "a tool's result" }] }
            ]
          })
        )
        assert.strictEqual(told.stop_reason, "end_turn")
      })
    )

    it.effect("tokens are counted before they are spent", () =>
      Effect.gen(function* () {
        const { anthropic } = yield* Clients
        const counted = yield* Effect.promise(() => anthropic.messages.countTokens(asked))
        const spent = yield* Effect.promise(() => anthropic.messages.create(asked))
        assert.strictEqual(counted.input_tokens, spent.usage.input_tokens)
      })
    )
  })

  describe("message batches", () => {
    it.effect("are made, listed, read and have results", () =>
      Effect.gen(function* () {
        const { anthropic } = yield* Clients
        const requests = [
          { custom_id: "good", params: asked },
          { custom_id: "bad", params: { ...asked, model: "simulate-529" } }
        ]
        const made = yield* Effect.promise(() => anthropic.messages.batches.create({ requests }))
        const newer = yield* Effect.promise(() => anthropic.messages.batches.create({ requests }))
        const listed = yield* collected(() => anthropic.messages.batches.list({ limit: 1 }))
        assert.deepStrictEqual(
          listed.map((batch) => batch.id),
          [newer.id, made.id]
        )
        const read = yield* Effect.promise(() => anthropic.messages.batches.retrieve(made.id))
        assert.strictEqual(read.processing_status, "ended")
        assert.deepStrictEqual([read.request_counts.succeeded, read.request_counts.errored], [1, 1])
        const results = yield* collected(() => anthropic.messages.batches.results(made.id))
        assert.deepStrictEqual(
          results.map((one) => [one.custom_id, one.result.type]),
          [
            ["good", "succeeded"],
            ["bad", "errored"]
          ]
        )
        const canceled = yield* Effect.promise(() => anthropic.messages.batches.cancel(made.id))
        assert.strictEqual(canceled.processing_status, "ended")
        assert.instanceOf(
          yield* rejected(() => anthropic.messages.batches.retrieve("msgbatch_none")),
          Anthropic.NotFoundError
        )
      })
    )

    it.effect("can be canceled while they run", () =>
      Effect.gen(function* () {
        let now = 0
        const { origin } = yield* SimulatorServer.serve({ batchMs: 1_000, now: () => now })
        const { batches } = new Anthropic({ apiKey: "any", baseURL: origin, maxRetries: 0 }).messages
        const made = yield* Effect.promise(() => batches.create({ requests: [{ custom_id: "1", params: asked }] }))
        assert.strictEqual(made.processing_status, "in_progress")
        assert.strictEqual((yield* Effect.promise(() => batches.cancel(made.id))).processing_status, "canceling")
        now = 1_000
        const results = yield* collected(() => batches.results(made.id))
        assert.deepStrictEqual(
          results.map((one) => one.result.type),
          ["canceled"]
        )
      })
    )
  })

  it.effect("models", () =>
    Effect.gen(function* () {
      const { anthropic } = yield* Clients
      const models = yield* collected(() => anthropic.models.list())
      assert.isTrue(models.every((model) => model.type === "model" && model.display_name !== ""))
      assert.strictEqual(
        (yield* Effect.promise(() => anthropic.models.retrieve("simulator-large"))).id,
        "simulator-large"
      )
    })
  )

  it.effect("failures are the client's own error classes", () =>
    Effect.gen(function* () {
      const { anthropic } = yield* Clients
      const ask = (model: string) => rejected(() => anthropic.messages.create({ ...asked, model }))
      assert.instanceOf(yield* ask("simulate-429"), Anthropic.RateLimitError)
      assert.instanceOf(yield* ask("simulate-529"), Anthropic.InternalServerError)
      const anonymous = new Anthropic({
        apiKey: "any",
        baseURL: anthropic.baseURL,
        maxRetries: 0,
        defaultHeaders: { authorization: null }
      })
      const refused = yield* rejected(() => anonymous.messages.create(asked))
      assert.isTrue(refused instanceof Anthropic.AuthenticationError && /^req_/.test(refused.requestID ?? ""))
    })
  )
})

const collected = <A>(stream: () => PromiseLike<AsyncIterable<A>>) =>
  Effect.promise(async () => {
    const items: Array<A> = []
    for await (const item of await stream()) items.push(item)
    return items
  })

const rejected = (call: () => PromiseLike<unknown>) =>
  Effect.flip(Effect.tryPromise({ try: async () => call(), catch: (error) => error }))
