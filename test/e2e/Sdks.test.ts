import Anthropic from "@anthropic-ai/sdk"
import { assert, describe, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import OpenAI from "openai"
import * as GatewayOnPostgres from "../GatewayOnPostgres.ts"
import * as RunningGateway from "../RunningGateway.ts"
import * as SimulatorServer from "../upstream/SimulatorServer.ts"
import * as Minute from "./Minute.ts"

/** A gateway in front of a simulated upstream, in a process of its own, with the official clients of both families. */
class Bench extends Context.Service<
  Bench,
  {
    readonly gateway: RunningGateway.RunningGateway
    readonly openai: OpenAI
    readonly anthropic: Anthropic
    readonly clients: (policy: Readonly<Record<string, unknown>>) => Promise<{ openai: OpenAI; anthropic: Anthropic }>
  }
>()("test/e2e/Sdks/Bench") {
  static readonly layer = Layer.effect(
    Bench,
    Effect.gen(function* () {
      const upstream = yield* SimulatorServer.serve({ paceMs: 0 })
      const gateway = yield* GatewayOnPostgres.start({
        environment: { UPSTREAM_BASE_URL: upstream.origin, UPSTREAM_SERVICE_KEY: "upstream-secret" }
      })
      const clientsOf = (apiKey: string) => ({
        openai: new OpenAI({ apiKey, baseURL: `${gateway.proxy}/v1`, maxRetries: 0 }),
        anthropic: new Anthropic({ apiKey, baseURL: gateway.proxy, maxRetries: 0 })
      })
      const key = yield* Effect.promise(() => RunningGateway.createKey(gateway))
      return Bench.of({
        gateway,
        ...clientsOf(key.raw),
        clients: async (policy) => clientsOf((await RunningGateway.createKey(gateway, { policy })).raw)
      })
    })
  )
}

const routes = {
  a: ["chat-completions", "responses", "embeddings"],
  b: [
    "messages",
    "messages-count-tokens",
    "message-batches",
    "message-batch",
    "message-batch-results",
    "message-batch-cancel",
    "models"
  ]
} as const

const setMode = (gateway: RunningGateway.RunningGateway, mode: string) =>
  Promise.all(
    (["a", "b"] as const).flatMap((family) =>
      routes[family].map((id) => gateway.operate("PATCH", `/family-${family}-routes/${id}/mode`, { mode }))
    )
  )

const toItsEnd = async (events: AsyncIterable<unknown>): Promise<void> => {
  for await (const _ of events);
}

const hello = [{ role: "user" as const, content: "hello there" }]

describe.each(["managed_by_gateway", "direct_upstream_passthrough"])(
  "the official clients, unchanged, in mode %s",
  (mode) => {
    layer(Bench.layer, { excludeTestServices: true })((it) => {
      const live = (name: string, test: (bench: Bench["Service"]) => Promise<void>) =>
        it.effect(name, () =>
          Effect.gen(function* () {
            const bench = yield* Bench
            yield* Effect.promise(() => setMode(bench.gateway, mode))
            yield* Effect.promise(() => test(bench))
          })
        )

      live("family A: chat", async ({ openai }) => {
        const answer = await openai.chat.completions.create({ model: "m", messages: hello })
        assert.include(answer.choices[0]?.message.content ?? "", "hello there")
        assert.isAbove(answer.usage?.total_tokens ?? 0, 0)
      })

      live("family A: a stream of chat, without usage that was not asked for", async ({ openai }) => {
        const chunks = await Array.fromAsync(
          await openai.chat.completions.create({ model: "m", messages: hello, stream: true })
        )
        assert.include(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join(""), "hello there")
        assert.isTrue(chunks.every((chunk) => chunk.choices.length === 1 && !("usage" in chunk)))
      })

      live("family A: a stream of chat, with usage that was asked for", async ({ openai }) => {
        const chunks = await Array.fromAsync(
          await openai.chat.completions.create({
            model: "m",
            messages: hello,
            stream: true,
            stream_options: { include_usage: true }
          })
        )
        assert.isAbove(chunks.at(-1)?.usage?.total_tokens ?? 0, 0)
        assert.isTrue(chunks.slice(0, -1).every((chunk) => chunk.usage === null))
      })

      live("family A: responses, plain and streamed", async ({ openai }) => {
        const answer = await openai.responses.create({ model: "m", input: "hello there" })
        assert.include(answer.output_text, "hello there")
        const events = await Array.fromAsync(
          await openai.responses.create({ model: "m", input: "hello there", stream: true })
        )
        assert.strictEqual(events.at(-1)?.type, "response.completed")
      })

      live("family A: embeddings and models", async ({ openai }) => {
        const { data } = await openai.embeddings.create({ model: "m", input: ["one", "two"] })
        assert.strictEqual(data.length, 2)
        assert.isAbove(data[0]?.embedding.length ?? 0, 0)
        assert.isAbove((await openai.models.list()).data.length, 0)
      })

      live("family B: messages, plain and streamed", async ({ anthropic }) => {
        const request = { model: "m", max_tokens: 64, messages: hello }
        const answer = await anthropic.messages.create(request)
        const [block] = answer.content
        assert.include(block?.type === "text" ? block.text : "", "hello there")
        const streamed = await anthropic.messages.stream(request).finalMessage()
        assert.deepStrictEqual(streamed.content, answer.content)
        assert.isAbove(streamed.usage.output_tokens, 0)
      })

      live("family B: count of tokens and models", async ({ anthropic }) => {
        const { input_tokens } = await anthropic.messages.countTokens({ model: "m", messages: hello })
        assert.isAbove(input_tokens, 0)
        assert.isAbove((await anthropic.models.list()).data.length, 0)
      })

      live("family B: a batch from its creation to its results", async ({ anthropic }) => {
        const batch = await anthropic.messages.batches.create({
          requests: [{ custom_id: "one", params: { model: "m", max_tokens: 16, messages: hello } }]
        })
        assert.strictEqual((await anthropic.messages.batches.retrieve(batch.id)).id, batch.id)
        const listed = await anthropic.messages.batches.list()
        assert.isTrue(listed.data.some(({ id }) => id === batch.id))
        const cancelled = await anthropic.messages.batches.cancel(batch.id)
        assert.strictEqual(cancelled.id, batch.id)
      })

      live("a wrong key: AuthenticationError in both families", async ({ gateway }) => {
        const apiKey = `rk_live_${"0".repeat(64)}`
        const openai = new OpenAI({ apiKey, baseURL: `${gateway.proxy}/v1`, maxRetries: 0 })
        const anthropic = new Anthropic({ apiKey, baseURL: gateway.proxy, maxRetries: 0 })
        const a = await rejection(openai.models.list())
        assert.instanceOf(a, OpenAI.AuthenticationError)
        assert.strictEqual(a.code, "invalid_virtual_key")
        const b = await rejection(anthropic.messages.create({ model: "m", max_tokens: 1, messages: hello }))
        assert.instanceOf(b, Anthropic.AuthenticationError)
        assert.strictEqual(b.type, "authentication_error")
      })

      live("a model that the policy does not allow: PermissionDeniedError", async ({ clients }) => {
        const { anthropic, openai } = await clients({ allowed_models: ["other"] })
        const a = await rejection(openai.chat.completions.create({ model: "m", messages: hello }))
        assert.instanceOf(a, OpenAI.PermissionDeniedError)
        assert.deepStrictEqual([a.code, a.param], ["policy_denied", "model"])
        const b = await rejection(anthropic.messages.create({ model: "m", max_tokens: 1, messages: hello }))
        assert.instanceOf(b, Anthropic.PermissionDeniedError)
      })

      live("a body beyond the key's limit: status 413, and the limit is named", async ({ clients }) => {
        const { anthropic, openai } = await clients({ max_request_body_bytes: 200 })
        const large = [{ role: "user" as const, content: "x".repeat(200_000) }]
        const a = await rejection(openai.chat.completions.create({ model: "m", messages: large }))
        assert.instanceOf(a, OpenAI.APIError)
        assert.strictEqual(a.status, 413)
        assert.include(a.message, "200 bytes")
        const b = await rejection(anthropic.messages.create({ model: "m", max_tokens: 1, messages: large }))
        assert.instanceOf(b, Anthropic.APIError)
        assert.strictEqual(b.status, 413)
      })

      live("a stream that a limit cuts: an error that names the limit, in both families", async ({ clients }) => {
        const { anthropic, openai } = await clients({ max_response_body_bytes: 2_000 })
        const messages = [{ role: "user" as const, content: "word ".repeat(400) }]
        const streams = [
          () => openai.chat.completions.create({ model: "m", messages, stream: true }),
          () => openai.responses.create({ model: "m", input: "word ".repeat(400), stream: true }),
          () => anthropic.messages.create({ model: "m", max_tokens: 1_000, messages, stream: true })
        ]
        for (const begin of streams) {
          const failure = await rejection(begin().then(toItsEnd))
          assert.include(String(failure), "larger than 2000 bytes (max_response_body_bytes of this key's policy)")
        }
      })

      live("past the requests of a minute: RateLimitError with retry-after", async ({ clients }) => {
        const { anthropic, openai } = await clients({ rpm_limit: 1 })
        await Effect.runPromise(Minute.early)
        await openai.models.list()
        const a = await rejection(openai.models.list())
        assert.instanceOf(a, OpenAI.RateLimitError)
        assert.strictEqual(a.code, "rate_limit_exceeded")
        assert.isAbove(Number(a.headers.get("retry-after")), 0)
        const b = await rejection(anthropic.messages.create({ model: "m", max_tokens: 1, messages: hello }))
        assert.instanceOf(b, Anthropic.RateLimitError)
      })
    })
  }
)

const rejection = (promise: PromiseLike<unknown>): Promise<unknown> =>
  Promise.resolve(promise).then(
    () => assert.fail("it did not reject"),
    (error) => error
  )
