import { assert, layer } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import * as RawConnection from "../../RawConnection.ts"
import { type Clients, GuardedBench } from "./GuardedBench.ts"
import type { GuardrailCall, GuardrailServer } from "./GuardrailServer.ts"
import { renumbered } from "./Renumbered.ts"
import type { StreamingVendor } from "./StreamingVendor.ts"
import * as VendorAnswers from "./VendorAnswers.ts"

const own = "john@example.com"
const messages = [{ role: "user" as const, content: `I am ${own}.` }]

const words = "This is a bad mail to somebody, with a good many words, more than a window has, and 😀. "
const call = { id: "call_8Zr2aVqIYQKd0LYvF5m1hT3x", tool: "send", input: `{"body":"a bad\\nmail", "to":["${words}"]}` }
const answer = { text: words.repeat(3), calls: [call, { ...call, id: "call_2" }] }

/** Members that the clients add to what was sent. */
const asSent = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value), (key, member) => (/^parsed|^output_text$/.test(key) ? undefined : member))

interface Streamed {
  /** The text in pieces. */
  readonly text: string
  /** The accumulated answer, or the client's error. */
  readonly end: unknown
}

interface Family {
  readonly name: string
  readonly render: (answer: VendorAnswers.ModelAnswer, size: number) => VendorAnswers.Rendered
  readonly stream: (clients: Clients) => Promise<Streamed>
  readonly plain: (clients: Clients) => Promise<unknown>
  /** An event by which the vendor says that it failed. */
  readonly error: (message: string) => string
}

const collected = async (end: Promise<unknown>, text: () => string): Promise<Streamed> => {
  const settled = await end.then(asSent, (error: unknown) => error)
  return { text: text(), end: settled }
}

const choicesOf = (choices: ReadonlyArray<{ finish_reason: unknown; index: number; message: unknown }>) =>
  choices.map(({ finish_reason, index, message }) => ({ finish_reason, index, message }))

const families: ReadonlyArray<Family> = [
  {
    name: "chat",
    // Two choices take turns, and the second one has only text.
    render: (answer, size) => VendorAnswers.chat([answer, { text: words }], size),
    stream: ({ openai }) => {
      let text = ""
      const stream = openai.chat.completions.stream({ model: "m", messages })
      stream.on("chunk", ({ choices: [choice] }) => {
        if (choice?.index === 0) text += choice.delta.content ?? ""
      })
      return collected(
        stream.finalChatCompletion().then(({ choices }) => choicesOf(choices)),
        () => text
      )
    },
    plain: async ({ openai }) =>
      asSent(choicesOf((await openai.chat.completions.create({ model: "m", messages })).choices)),
    error: (message) => `data: ${JSON.stringify({ error: { type: "overloaded_error", message } })}\n\n`
  },
  {
    name: "responses",
    render: VendorAnswers.responses,
    stream: ({ openai }) => {
      let text = ""
      const stream = openai.responses.stream({ model: "m", input: messages })
      stream.on("response.output_text.delta", ({ delta }) => {
        text += delta
      })
      return collected(
        stream.finalResponse().then(({ output }) => output),
        () => text
      )
    },
    plain: async ({ openai }) => asSent((await openai.responses.create({ model: "m", input: messages })).output),
    error: (message) =>
      `event: error\ndata: ${JSON.stringify({ type: "error", sequence_number: 25, code: null, param: null, message })}\n\n`
  },
  {
    name: "messages",
    render: VendorAnswers.messages,
    stream: ({ anthropic }) => {
      let text = ""
      const stream = anthropic.messages.stream({ model: "m", max_tokens: 9, messages })
      stream.on("text", (delta) => {
        text += delta
      })
      return collected(
        stream.finalMessage().then(({ content }) => content),
        () => text
      )
    },
    plain: async ({ anthropic }) =>
      asSent((await anthropic.messages.create({ model: "m", max_tokens: 9, messages })).content),
    error: (message) =>
      `event: error\ndata: ${JSON.stringify({ type: "error", error: { type: "overloaded_error", message } })}\n\n`
  }
]

/** The code in the body of the gateway's error, as the client keeps it. */
const codeOf = (failure: unknown): string | undefined =>
  failure instanceof Error && "error" in failure
    ? /"code":"([a-z_]+)"/.exec(JSON.stringify(failure.error))?.[1]
    : assert.fail(`no error of a client: ${JSON.stringify(failure)}`)

interface JudgedText {
  readonly context?: string
  readonly text: string
}

const textsOf = (body: string): ReadonlyArray<JudgedText> => JSON.parse(body).response.texts

const allows = () => ({ action: "allow" })
/** The same words change in the texts of a stream and in a plain answer. */
const improves = ({ response }: GuardrailCall) => ({
  action: "modify",
  response: JSON.parse(JSON.stringify(response).replaceAll("bad", "fine"))
})

interface Bench {
  readonly vendor: StreamingVendor
  readonly guardrail: GuardrailServer
  readonly clientsOf: (...guardrails: ReadonlyArray<string>) => Promise<Clients>
}

layer(GuardedBench.layer, { excludeTestServices: true })("HTTP guardrails and the official clients", (it) => {
  const live = (name: string, test: (bench: Bench) => Effect.Effect<void, never, Scope.Scope>) =>
    it.effect(name, () =>
      Effect.gen(function* () {
        const bench = yield* GuardedBench
        bench.guardrail.calls.length = 0
        bench.guardrail.reply(allows)
        yield* test(bench)
      })
    )
  const each = (name: string, test: (family: Family, bench: Bench) => Promise<void>) => {
    for (const family of families) live(`${family.name}: ${name}`, (bench) => Effect.promise(() => test(family, bench)))
  }

  each("what is allowed or warned of is the plain answer", async (family, { clientsOf, guardrail, vendor }) => {
    for (const mode of ["collects", "windows"]) {
      const clients = await clientsOf(mode)
      for (const action of ["allow", "warn"]) {
        guardrail.reply(() => ({ action }))
        for (const size of [1, 7, 1_000]) {
          vendor.answer({ ...family.render(answer, size), sizes: [100] })
          const { end } = await family.stream(clients)
          assert.deepStrictEqual(end, await family.plain(clients), `${mode}, ${action}, pieces of ${size}`)
        }
      }
    }
    assert.isTrue(guardrail.calls.some((body) => body.includes("bad")))
  })

  each("what is modified is the modified plain answer", async (family, { clientsOf, guardrail, vendor }) => {
    const clients = await clientsOf("collects")
    guardrail.reply(improves)
    for (const size of [1, 7, 1_000]) {
      vendor.answer({ ...family.render(answer, size), sizes: [100] })
      const { end, text } = await family.stream(clients)
      assert.deepStrictEqual(end, await family.plain(clients), `pieces of ${size}`)
      assert.strictEqual(text, answer.text.replaceAll("bad", "fine"))
      assert.notInclude(JSON.stringify(end), "bad")
    }
  })

  each("a collected stream that is blocked has no text", async (family, { clientsOf, guardrail, vendor }) => {
    const clients = await clientsOf("collects")
    guardrail.reply(() => ({ action: "block" }))
    vendor.answer({ ...family.render(answer, 7), sizes: [100] })
    const { end, text } = await family.stream(clients)
    assert.deepStrictEqual([codeOf(end), text], ["guardrail_blocked", ""])
    const plain = await family.plain(clients).then(
      () => assert.fail("the plain answer passed"),
      (error: unknown) => error
    )
    assert.strictEqual(codeOf(plain), "guardrail_blocked")
  })

  each(
    "a phrase over two windows ends the stream after the text that was judged",
    async (family, { clientsOf, guardrail, vendor }) => {
      const clients = await clientsOf("windows")
      const phrase = "forbidden words"
      const text = `${"Nothing. ".repeat(7).slice(0, 57)} ${phrase} and more of them. ${words}`
      guardrail.reply(({ response }) => {
        const judged = textsOf(JSON.stringify({ response }))
        const found = judged.some(({ context = "", text }) => `${context}${text}`.includes(phrase))
        return { action: found ? "block" : "allow" }
      })
      vendor.answer({ ...family.render({ text }, 3), sizes: [100] })
      const streamed = await family.stream(clients)
      assert.strictEqual(codeOf(streamed.end), "guardrail_blocked")
      assert.strictEqual(streamed.text, text.slice(0, 63))
      const judged = guardrail.calls.flatMap(textsOf)
      assert.isFalse(judged.some(({ text }) => text.includes(phrase)))
    }
  )

  each(
    "an error of the vendor comes after the text before it, and a broken answer breaks",
    async (family, { clientsOf, vendor }) => {
      for (const mode of ["collects", "windows"]) {
        const { events } = family.render({ text: words.repeat(2) }, 10)
        const middle = events.slice(0, 18)
        vendor.answer({ events: [...middle, family.error("The model is overloaded")], sizes: [100] })
        const { end, text } = await family.stream(await clientsOf(mode))
        assert.match(String(end), /overloaded/, mode)
        assert.isNotEmpty(text, mode)
        assert.isTrue(words.repeat(2).startsWith(text), mode)

        vendor.answer({ events: middle, sizes: [100], breaks: true })
        const broken = await family.stream(await clientsOf(mode))
        assert.match(String(broken.end), /terminated|[Cc]onnection/, mode)
        if (mode === "collects") assert.isEmpty(broken.text)
        else assert.isTrue(words.repeat(2).startsWith(broken.text))
      }
    }
  )

  each("before pii-redact no guardrail sees the user's values", async (family, { clientsOf, guardrail, vendor }) => {
    const greeting = {
      text: `Dear [EMAIL_1], this is no bad mail. ${words}`,
      calls: [{ ...call, input: `{"to":"[EMAIL_1]"}` }]
    }
    for (const mode of ["collects", "windows"]) {
      guardrail.calls.length = 0
      const clients = await clientsOf(mode, "pii-redact")
      vendor.answer({ ...family.render(greeting, 3), sizes: [100] })
      const { end, text } = await family.stream(clients)
      assert.deepStrictEqual(renumbered(end), renumbered(await family.plain(clients)), mode)
      assert.strictEqual(text, greeting.text.replace("[EMAIL_1]", own))
      assert.isNotEmpty(guardrail.calls)
      for (const body of guardrail.calls) assert.notInclude(body, own)
    }
  })

  each("after pii-redact a guardrail sees what the client gets", async (family, { clientsOf, guardrail, vendor }) => {
    const text = `Dear [EMAIL_1], ask jane@example.org. ${words}`
    for (const mode of ["collects", "windows"]) {
      guardrail.calls.length = 0
      const clients = await clientsOf("pii-redact", mode)
      vendor.answer({ ...family.render({ text }, 3), sizes: [100] })
      const streamed = await family.stream(clients)
      assert.deepStrictEqual(renumbered(streamed.end), renumbered(await family.plain(clients)), mode)
      assert.match(streamed.text, /^Dear john@example\.com, ask \[EMAIL_\d\]\. /)
      const seen = guardrail.calls.join("")
      assert.include(seen, own)
      assert.notInclude(seen, "jane@example.org")
    }
  })

  live("comments arrive before the first event of a collected stream", ({ clientsOf, vendor }) =>
    Effect.gen(function* () {
      const { apiKey, origin } = yield* Effect.promise(() => clientsOf("collects"))
      const gate = Promise.withResolvers<void>()
      vendor.answer({ ...VendorAnswers.chat([answer], 7), sizes: [1_000], ends: gate.promise })
      const body = JSON.stringify({ model: "m", messages, stream: true })
      const client = yield* RawConnection.open(origin)
      client.write(
        `POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer ${apiKey}\r\n` +
          `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
      )
      const waiting = yield* client.until(/: waiting\n\n/)
      assert.match(waiting, /^HTTP\/1\.1 200 /)
      assert.notInclude(waiting, "data:")
      gate.resolve()
      assert.include(yield* client.until(/data: \[DONE\]\n\n/), "chat.completion.chunk")
    })
  )
})
