import { halves } from "./ChatCompletions.ts"
import { type Json, listOf, numberOf, objectOf, textOf } from "./Json.ts"
import { contentText, type Prompt, type Reply, replyTo, tokensOf } from "./Reply.ts"
import {
  errorResponse,
  eventStreamResponse,
  jsonResponse,
  type Moment,
  type SimulatedResponse
} from "./SimulatedResponse.ts"

export const messages = (body: Json, moment: Moment): SimulatedResponse => {
  const mistake = problemOf(body)
  if (mistake !== undefined) return errorResponse("B", moment, 400, mistake)
  const prompt = promptOf(body)
  const reply = replyTo(prompt)
  return body["stream"] === true
    ? eventStreamResponse(events(prompt, reply, moment))
    : jsonResponse(message(prompt, reply, moment))
}

export const countTokens = (body: Json, moment: Moment): SimulatedResponse =>
  listOf(body["messages"]).length === 0
    ? errorResponse("B", moment, 400, "messages: Field required")
    : jsonResponse({ input_tokens: tokensOf(promptOf(body).text) })

export const messageOf = (body: Json, moment: Moment) => {
  const prompt = promptOf(body)
  return message(prompt, replyTo(prompt), moment)
}

export const problemOf = (body: Json): string | undefined => {
  if (listOf(body["messages"]).length === 0) return "messages: Field required"
  if (numberOf(body["max_tokens"]) === undefined) return "max_tokens: Field required"
  return undefined
}

const promptOf = (body: Json): Prompt => {
  const turns = listOf(body["messages"]).map(objectOf)
  const last = turns.at(-1)
  const answersTool = listOf(last?.["content"]).some((part) => objectOf(part)["type"] === "tool_result")
  return {
    model: textOf(body["model"]) ?? "",
    text: [contentText(body["system"]), ...turns.map((turn) => contentText(turn["content"]))].join("\n"),
    lastUserText: answersTool ? undefined : contentText(last?.["content"]),
    tools: listOf(body["tools"])
      .map(objectOf)
      .map((tool) => ({ name: textOf(tool["name"]) ?? "", schema: objectOf(tool["input_schema"]) })),
    maxTokens: numberOf(body["max_tokens"])
  }
}

const stopReasons = { stop: "end_turn", length: "max_tokens", call: "tool_use" } as const

const message = (prompt: Prompt, reply: Reply, moment: Moment) => ({
  ...head(prompt, moment),
  content: [
    reply.call === undefined
      ? { type: "text", text: reply.text, citations: null }
      : { type: "tool_use", id: toolId(moment), name: reply.call.name, input: reply.call.arguments }
  ],
  stop_reason: stopReasons[reply.finish],
  usage: usageOf(reply, reply.usage.output)
})

const head = (prompt: Prompt, moment: Moment) => ({
  id: `msg_${moment.serial}`,
  type: "message",
  role: "assistant",
  model: prompt.model,
  stop_sequence: null,
  stop_details: null,
  container: null,
  diagnostics: null
})

const toolId = (moment: Moment): string => `toolu_${moment.serial}`

const events = (prompt: Prompt, reply: Reply, moment: Moment) => [
  {
    type: "message_start",
    message: { ...head(prompt, moment), content: [], stop_reason: null, usage: usageOf(reply, 1) }
  },
  ...blockEvents(reply, moment),
  { type: "content_block_stop", index: 0 },
  {
    type: "message_delta",
    delta: { stop_reason: stopReasons[reply.finish], stop_sequence: null, stop_details: null, container: null },
    usage: usageOf(reply, reply.usage.output)
  },
  { type: "message_stop" }
]

const blockEvents = (reply: Reply, moment: Moment) => {
  const ping = { type: "ping" }
  const delta = (of: Json) => ({ type: "content_block_delta", index: 0, delta: of })
  return reply.call === undefined
    ? [
        { type: "content_block_start", index: 0, content_block: { type: "text", text: "", citations: null } },
        ping,
        ...reply.pieces.map((text) => delta({ type: "text_delta", text }))
      ]
    : [
        {
          type: "content_block_start",
          index: 0,
          content_block: { type: "tool_use", id: toolId(moment), name: reply.call.name, input: {} }
        },
        ping,
        ...halves(JSON.stringify(reply.call.arguments)).map((json) =>
          delta({ type: "input_json_delta", partial_json: json })
        )
      ]
}

/** In the Anthropic API, unlike OpenAI's, `input_tokens` does not include cached tokens. */
const usageOf = ({ usage }: Reply, output: number) => ({
  input_tokens: usage.input - usage.cached,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: usage.cached,
  cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
  output_tokens: output,
  output_tokens_details: null,
  server_tool_use: null,
  service_tier: "standard",
  speed: null,
  inference_geo: null
})
