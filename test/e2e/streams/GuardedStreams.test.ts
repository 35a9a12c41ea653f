import Anthropic from "@anthropic-ai/sdk"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import OpenAI from "openai"
import { type Clients, GuardedBench } from "./GuardedBench.ts"
import { renumbered } from "./Renumbered.ts"
import type { StreamingVendor } from "./StreamingVendor.ts"
import * as VendorAnswers from "./VendorAnswers.ts"

/** Values that the user does not know, and that nobody may see. */
const planted = ["jane.roe@example.org", "jane.roe", "555-123-4567", "987-65-4321", "secret@example.net"]

const own = "john@example.com"
const request = `I am ${own}.`

const words = "Dear [EMAIL_1], ask jane.roe@example.org 😀 or call +1-555-123-4567; SSN 987-65-4321. See you"
/** A model may escape what it likes, nest JSON in JSON, and write values as names of members. */
const input = String.raw`{"a":"jane.roe\u0040example.org", "body":"Tel.\n+1-555-123-4567 \"987-65-4321\"", "cc":["[EMAIL_1]"],
  "for [EMAIL_1]":{"555-123-4567":true}, "nested":"{\"to\":\"jane.roe\\u0040example.org\"}", "order":5551234567}`
const call = { id: "call_8Zr2aVqIYQKd0LYvF5m1hT3x", tool: "send", input }
const answer = { text: words, calls: [call] }

/** The length of the pieces in which the model writes, and the sizes of the pieces in which the bytes arrive. */
const splittings: ReadonlyArray<readonly [number, ReadonlyArray<number>]> = [
  [1, [1_000]],
  [2, [7, 1, 30]],
  [3, [100_000]],
  [7, [64]],
  [16, [1]],
  [1_000, [5_000]]
]

const assertHidden = (seen: unknown) => {
  const text = JSON.stringify(seen)
  for (const value of planted) assert.notInclude(text, value)
  assert.include(text, own)
}

layer(GuardedBench.layer, { excludeTestServices: true })("guarded streams and the official clients", (it) => {
  const live = (name: string, test: (vendor: StreamingVendor, clients: Clients) => Promise<void>, config = {}) =>
    it.effect(name, () =>
      Effect.gen(function* () {
        const { clients, vendor } = yield* GuardedBench
        yield* Effect.promise(async () => test(vendor, await clients(config)))
      })
    )

  const chatMessages = [{ role: "user" as const, content: request }]
  const chatOf = async ({ openai }: Clients) => {
    const stream = openai.chat.completions.stream({ model: "m", messages: chatMessages })
    const reasoning = new Map<number, string>()
    stream.on("chunk", ({ choices }) => {
      for (const { delta, index } of choices) {
        // The client's types do not know this member, and its helper keeps only the last piece of it.
        const piece = "reasoning_content" in delta ? String(delta.reasoning_content) : ""
        reasoning.set(index, (reasoning.get(index) ?? "") + piece)
      }
    })
    const contents: Array<string | null> = []
    stream.on("content.done", ({ content }) => {
      contents.push(content)
    })
    const streamed = await stream.finalChatCompletion()
    const whole = streamed.choices.map(({ message }) => message.content)
    assert.includeMembers(whole, contents, "the event at the end of the content has all of it")
    return streamed.choices.map(({ finish_reason, index, message }) => {
      const reasoning_content = reasoning.get(index)
      return { finish_reason, index, message: { ...message, ...(reasoning_content && { reasoning_content }) } }
    })
  }
  const plainChatOf = async ({ openai }: Clients) => {
    const plain = await openai.chat.completions.create({ model: "m", messages: chatMessages })
    return plain.choices.map(({ finish_reason, index, message }) => ({ finish_reason, index, message }))
  }
  const asSent = (value: unknown): unknown =>
    JSON.parse(JSON.stringify(value), (key, member) => (/^parsed|^output_text$/.test(key) ? undefined : member))

  live("chat: the accumulated completion equals the plain one, in text and tool arguments", async (vendor, clients) => {
    for (const [size, sizes] of splittings) {
      vendor.answer({ ...VendorAnswers.chat([answer], size), sizes })
      const streamed = asSent(await chatOf(clients))
      assert.deepStrictEqual(streamed, asSent(await plainChatOf(clients)), `pieces of ${size}`)
      assertHidden(streamed)
    }
    assert.isFalse(vendor.bodies.some((body) => body.includes(own)))
  })

  live("chat: choices that take turns, reasoning, a refusal and several tools", async (vendor, clients) => {
    const choices = [
      { reasoning: `Think of jane.roe@example.org and ${words}`, ...answer, calls: [call, { ...call, id: "call_2" }] },
      { text: "", refusal: words },
      { text: `${words}${words}` },
      { text: "", calls: [{ ...call, input: "{}" }] }
    ]
    for (const [size, sizes] of splittings) {
      vendor.answer({ ...VendorAnswers.chat(choices, size), sizes })
      const streamed = asSent(await chatOf(clients))
      assert.deepStrictEqual(renumbered(streamed), renumbered(asSent(await plainChatOf(clients))), `pieces of ${size}`)
      assertHidden(streamed)
    }
  })

  live("chat: a stream with usage has it once, in its last chunk", async (vendor, { openai }) => {
    vendor.answer({ ...VendorAnswers.chat([answer], 3), sizes: [50] })
    const options = {
      model: "m",
      messages: chatMessages,
      stream: true,
      stream_options: { include_usage: true }
    } as const
    const chunks = await Array.fromAsync(await openai.chat.completions.create(options))
    assert.deepStrictEqual(
      chunks.flatMap(({ usage }, index) => (usage ? [[index, usage.total_tokens]] : [])),
      [[chunks.length - 1, 30]]
    )
  })

  const responsesOf = async ({ openai }: Clients) => {
    const stream = openai.responses.stream({ model: "m", input: request })
    const texts = new Map<string, string>()
    const numbers: Array<number> = []
    for await (const event of stream) {
      numbers.push(event.sequence_number)
      if (!event.type.endsWith(".delta") || !("delta" in event) || !("output_index" in event)) continue
      const lane = `${event.output_index}`
      texts.set(lane, (texts.get(lane) ?? "") + event.delta)
    }
    assert.deepStrictEqual(numbers, [...numbers.keys()], "the numbers have no gaps")
    return { response: await stream.finalResponse(), texts: [...texts.values()] }
  }

  live("responses: the accumulated response equals the plain one, and so do the deltas", async (vendor, clients) => {
    const answer = {
      text: words,
      citation: "Jane (jane.roe@example.org)",
      calls: [call],
      script: `mail("secret@example.net") # 😀 ${words}`
    }
    for (const [size, sizes] of splittings) {
      vendor.answer({ ...VendorAnswers.responses(answer, size), sizes })
      const { response, texts } = await responsesOf(clients)
      const plain = await clients.openai.responses.create({ model: "m", input: request })
      assert.deepStrictEqual(renumbered(asSent(response.output)), renumbered(asSent(plain.output)), `pieces of ${size}`)
      assertHidden(response)
      assert.deepStrictEqual(
        texts,
        response.output.flatMap((item) =>
          item.type === "message"
            ? item.content.map((part) => (part.type === "output_text" ? part.text : part.refusal))
            : item.type === "function_call"
              ? [item.arguments]
              : item.type === "custom_tool_call"
                ? [item.input]
                : []
        )
      )
    }
  })

  live(
    "responses: reasoning summaries and refusals",
    async (vendor, clients) => {
      for (const [size, sizes] of splittings) {
        const answer = { reasoning: words, signature: "gAAAAABn", refusal: words }
        vendor.answer({ ...VendorAnswers.responses(answer, size), sizes })
        const { response } = await responsesOf(clients)
        const plain = await clients.openai.responses.create({ model: "m", input: request })
        assert.deepStrictEqual(asSent(response.output), asSent(plain.output), `pieces of ${size}`)
        assertHidden(response)
      }
    },
    { unreadable: "pass" }
  )

  const messagesRequest = { model: "m", max_tokens: 100, messages: chatMessages }
  const signature = Buffer.from("signature".repeat(30)).toString("base64")

  live("messages: the accumulated message equals the plain one", async (vendor, { anthropic }) => {
    const reasoning = "The user is [EMAIL_1], who asks for this mail. Let me write"
    for (const [size, sizes] of splittings) {
      const all = { ...answer, reasoning, signature, citation: "Ask jane.roe@example.org" }
      vendor.answer({ ...VendorAnswers.messages(all, size), sizes })
      const stream = anthropic.messages.stream(messagesRequest)
      const types: Array<string> = []
      stream.on("streamEvent", (event) => {
        if (event.type === "content_block_delta") types.push(event.delta.type)
      })
      const streamed = await stream.finalMessage()
      const plain = await anthropic.messages.create(messagesRequest)
      assert.deepStrictEqual(
        renumbered(asSent(streamed.content)),
        renumbered(asSent(plain.content)),
        `pieces of ${size}`
      )
      assert.deepInclude(streamed.content[0], { thinking: reasoning, signature })
      assert.isBelow(types.lastIndexOf("thinking_delta"), types.indexOf("signature_delta"))
      assertHidden(streamed)
      assert.strictEqual(streamed.usage.output_tokens, 20)
    }
  })

  live("an error in the middle ends each stream with the text that came before it", async (vendor, clients) => {
    const { anthropic, openai } = clients
    const until = ({ events }: VendorAnswers.Rendered, error: VendorAnswers.Json, name?: string) => ({
      events: [
        ...events.slice(0, 25),
        `${name === undefined ? "" : `event: ${name}\n`}data: ${JSON.stringify(error)}\n\n`
      ],
      sizes: [40]
    })
    const error = { type: "overloaded_error", message: "The model of secret@example.net is overloaded" }
    let text = ""
    vendor.answer(until(VendorAnswers.chat([{ text: words }], 1), { error }))
    const chat = openai.chat.completions.stream({ model: "m", messages: chatMessages })
    chat.on("content", (delta) => {
      text += delta
    })
    const ofChat = await rejection(chat.finalChatCompletion())
    assert.strictEqual(text, "Dear john@example.com, ask jane")

    vendor.answer(until(VendorAnswers.messages({ text: words }, 1), { type: "error", error }, "error"))
    text = ""
    const message = anthropic.messages.stream(messagesRequest)
    message.on("text", (delta) => {
      text += delta
    })
    const ofMessage = await rejection(message.finalMessage())
    assert.strictEqual(text, "Dear john@example.com, ask ja")

    vendor.answer(
      until(
        VendorAnswers.responses({ text: words }, 1),
        { type: "error", sequence_number: 25, code: null, param: null, message: error.message },
        "error"
      )
    )
    text = ""
    const response = openai.responses.stream({ model: "m", input: request })
    response.on("response.output_text.delta", ({ delta }) => {
      text += delta
    })
    const ofResponse = await rejection(response.finalResponse())
    assert.strictEqual(text, "Dear john@example.com, ask j")
    assert.instanceOf(ofChat, OpenAI.APIError)
    assert.instanceOf(ofMessage, Anthropic.APIError)
    assert.instanceOf(ofResponse, OpenAI.APIError)
    for (const failure of [ofChat, ofMessage, ofResponse]) assert.match(String(failure), /\[EMAIL_2\] is overloaded/)
  })
})

const rejection = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => assert.fail("it did not reject"),
    (error: unknown) => error
  )
