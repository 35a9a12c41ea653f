import { randomBytes, randomUUID } from "node:crypto"
import type Anthropic from "@anthropic-ai/sdk"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type OpenAI from "openai"
import { type Clients, GuardedBench } from "./GuardedBench.ts"
import type { StreamingVendor } from "./StreamingVendor.ts"
import * as VendorAnswers from "./VendorAnswers.ts"

const hex = (length: number) => randomBytes(length).toString("hex").slice(0, length)
const word = (length: number) =>
  randomBytes(length * 2)
    .toString("base64")
    .replaceAll(/[+/=]/g, "")
    .slice(0, length)

/** The published shapes of ids. */
const shapes: Readonly<Record<string, () => string>> = {
  response: () => `resp_${hex(48)}`,
  item: () => `msg_${hex(48)}`,
  reasoning: () => `rs_${hex(48)}`,
  function: () => `fc_${hex(48)}`,
  call: () => `call_${word(24)}`,
  "tool use": () => `toolu_01${word(22)}`,
  message: () => `msg_01${word(22)}`,
  completion: () => `chatcmpl-${word(29)}`,
  request: () => `req_011${word(21)}`,
  file: () => `file-${word(22)}`,
  batch: () => `msgbatch_01${word(22)}`,
  uuid: () => randomUUID(),
  commit: () => hex(40),
  digest: () => `sha256:${hex(64)}`,
  trace: () => `00-${hex(32)}-${hex(16)}-01`
}

const turns = 10
const emailOf = (turn: number) => `user${turn}@example.com`
const phoneOf = (turn: number) => `+1-555-010-100${turn}`
const questionOf = (turn: number) => `Turn ${turn}: write to ${emailOf(turn)} or call ${phoneOf(turn)}`

const picture = randomBytes(20_000).toString("base64")
const dataUrl = `data:image/png;base64,${picture}`
const signatureOf = (turn: number) => Buffer.alloc(300, `signature ${turn}`).toString("base64")
const toolId = (turn: number) => `toolu_01${"aB3dE5fG7hJ9kL1mN3pQ5"}${turn}`

/** The placeholders of the last question in a request, as the model sees them. */
const placeholdersIn = (body: string): readonly [string, string] => {
  const [, email = "?", phone = "?"] = /.*write to (\S+) or call (\[[A-Z]+_\d+\])/s.exec(body) ?? []
  return [email, phone]
}

/** Every other turn calls a tool, whose result comes back in the turn's second request. */
const modelAnswer = (body: string, turn: number, isSecond: boolean): VendorAnswers.ModelAnswer => {
  const [email, phone] = placeholdersIn(body)
  const thought = { reasoning: `I use ${email}`, signature: signatureOf(turn) }
  if (isSecond) return { ...thought, text: `I wrote to ${email} and called ${phone}` }
  const input = `{"to": "${email}", "text": "Line\\n\\"${phone}\\"", "at": 1763640000}`
  return { ...thought, text: `I will write to ${email}.`, calls: [{ id: toolId(turn), tool: "send", input }] }
}

const answerTo = (vendor: StreamingVendor, render: (answer: VendorAnswers.ModelAnswer) => VendorAnswers.Rendered) => {
  let requests = 0
  vendor.answer((body) => {
    const turn = Math.floor(requests / 2)
    const isSecond = requests++ % 2 === 1
    return { ...render(modelAnswer(body, turn, isSecond)), sizes: [200] }
  })
}

const assertTurn = (turn: number, call: { readonly id: string | undefined; readonly input: unknown }, text: string) => {
  assert.deepStrictEqual(call, {
    id: toolId(turn),
    input: { to: emailOf(turn), text: `Line\n"${phoneOf(turn)}"`, at: 1_763_640_000 }
  })
  assert.strictEqual(text, `I wrote to ${emailOf(turn)} and called ${phoneOf(turn)}`)
}

const assertHidden = (bodies: ReadonlyArray<string>) => {
  assert.lengthOf(bodies, 2 * turns)
  for (const body of bodies) {
    assert.notMatch(body, /@example\.com|555-010/)
    assert.include(body, picture)
  }
}

layer(GuardedBench.layer, { excludeTestServices: true })("conversations through pii-redact", (it) => {
  const live = (name: string, test: (vendor: StreamingVendor, clients: Clients) => Promise<void>) =>
    it.effect(name, () =>
      Effect.gen(function* () {
        const { clients, vendor } = yield* GuardedBench
        vendor.bodies.length = 0
        yield* Effect.promise(async () => test(vendor, await clients({ restore_output: true, unreadable: "pass" })))
      })
    )

  live("chat: ten turns with tools and a picture", async (vendor, { openai }) => {
    answerTo(vendor, (answer) => VendorAnswers.chat([answer], 3))
    const messages: Array<OpenAI.ChatCompletionMessageParam> = []
    const ask = async () => {
      const { choices } = await openai.chat.completions.stream({ model: "m", messages }).finalChatCompletion()
      const message = choices[0]?.message ?? assert.fail("no choice")
      messages.push(message)
      return message
    }
    for (let turn = 0; turn < turns; turn++) {
      const image = { type: "image_url" as const, image_url: { url: dataUrl } }
      const question = { type: "text" as const, text: questionOf(turn) }
      messages.push({ role: "user", content: turn === 0 ? [image, question] : [question] })
      const [call] = (await ask()).tool_calls ?? []
      const input = JSON.parse(call?.type === "function" ? call.function.arguments : "")
      messages.push({ role: "tool", tool_call_id: call?.id ?? "", content: `Sent to ${emailOf(turn)}` })
      assertTurn(turn, { id: call?.id, input }, (await ask()).content ?? "")
    }
    assertHidden(vendor.bodies)
    const last: OpenAI.ChatCompletionCreateParams = JSON.parse(vendor.bodies.at(-1) ?? "")
    const ids = last.messages.flatMap((message) => (message.role === "tool" ? [message.tool_call_id] : []))
    assert.deepStrictEqual(
      ids,
      Array.from({ length: turns }, (_, turn) => toolId(turn))
    )
  })

  live("responses: ten turns with tools, encrypted reasoning and a picture", async (vendor, { openai }) => {
    answerTo(vendor, (answer) => VendorAnswers.responses(answer, 3))
    const input: Array<OpenAI.Responses.ResponseInputItem> = []
    const outputs: Array<unknown> = []
    const ask = async () => {
      const { output, output_text } = await openai.responses.stream({ model: "m", input }).finalResponse()
      for (const item of output) {
        if (item.type === "message" || item.type === "reasoning" || item.type === "function_call") input.push(item)
        if (item.type === "reasoning") outputs.push(item.encrypted_content)
      }
      return { output, output_text }
    }
    for (let turn = 0; turn < turns; turn++) {
      const image = { type: "input_image" as const, image_url: dataUrl, detail: "auto" as const }
      const question = { type: "input_text" as const, text: questionOf(turn) }
      input.push({ role: "user", content: turn === 0 ? [image, question] : [question] })
      const call = (await ask()).output.find((item) => item.type === "function_call")
      input.push({ type: "function_call_output", call_id: call?.call_id ?? "", output: `Sent to ${emailOf(turn)}` })
      const { output_text } = await ask()
      assertTurn(turn, { id: call?.call_id, input: JSON.parse(call?.arguments ?? "") }, output_text)
    }
    assertHidden(vendor.bodies)
    const signatures = Array.from({ length: 2 * turns }, (_, at) => signatureOf(Math.floor(at / 2)))
    assert.deepStrictEqual(outputs, signatures)
    const last = vendor.bodies.at(-1) ?? ""
    for (const signature of signatures) assert.include(last, `"encrypted_content":"${signature}"`)
  })

  live("messages: ten turns with tools, signed thinking and a picture", async (vendor, { anthropic }) => {
    answerTo(vendor, (answer) => VendorAnswers.messages(answer, 3))
    const messages: Array<Anthropic.MessageParam> = []
    const received: Array<unknown> = []
    const ask = async () => {
      const message = await anthropic.messages.stream({ model: "m", max_tokens: 100, messages }).finalMessage()
      messages.push({ role: "assistant", content: message.content })
      received.push(message.content[0])
      return message.content
    }
    for (let turn = 0; turn < turns; turn++) {
      const source = { type: "base64" as const, media_type: "image/png" as const, data: picture }
      const question = { type: "text" as const, text: questionOf(turn) }
      const image = { type: "image" as const, source }
      messages.push({ role: "user", content: turn === 0 ? [image, question] : [question] })
      const call = (await ask()).find((block) => block.type === "tool_use")
      const result = { type: "tool_result" as const, tool_use_id: call?.id ?? "", content: `Sent to ${emailOf(turn)}` }
      messages.push({ role: "user", content: [result] })
      const text = (await ask()).find((block) => block.type === "text")
      assertTurn(turn, { id: call?.id, input: call?.input }, text?.text ?? "")
    }
    assertHidden(vendor.bodies)
    // A thinking block is signed, so the model's next turn gets exactly what the model wrote.
    const last: Anthropic.MessageCreateParams = JSON.parse(vendor.bodies.at(-1) ?? "")
    const thoughts = last.messages.flatMap(({ content, role }) => (role === "assistant" ? [content[0]] : []))
    assert.deepStrictEqual(thoughts, received.slice(0, -1))
    assert.deepInclude(thoughts[0], { thinking: "I use [EMAIL_1]", signature: signatureOf(0) })
  })

  live("ten thousand ids of each published shape pass unchanged in both directions", async (vendor, clients) => {
    const { anthropic, openai } = clients
    for (const [shape, next] of Object.entries(shapes)) {
      const content = Array.from({ length: 10_000 }, next).join(" ")
      const messages = [{ role: "user" as const, content }]
      const answer = { text: content }
      vendor.bodies.length = 0
      vendor.answer({ ...VendorAnswers.chat([answer], 997), sizes: [9_000] })
      const chat = await openai.chat.completions.stream({ model: "m", messages }).finalChatCompletion()
      vendor.answer({ ...VendorAnswers.responses(answer, 997), sizes: [9_000] })
      const response = await openai.responses.stream({ model: "m", input: content }).finalResponse()
      vendor.answer({ ...VendorAnswers.messages(answer, 997), sizes: [9_000] })
      const message = await anthropic.messages.stream({ model: "m", max_tokens: 9, messages }).finalText()
      for (const [place, text] of Object.entries({
        chat: chat.choices[0]?.message.content,
        response: response.output_text,
        message
      }))
        assert.isTrue(text === content, `${shape} in ${place}`)
      for (const body of vendor.bodies) assert.isTrue(body.includes(content), `${shape} upstream`)
      assert.lengthOf(vendor.bodies, 3)
    }
  })
})
