import { halves } from "./ChatCompletions.ts"
import { type Json, listOf, numberOf, objectOf, textOf } from "./Json.ts"
import { contentText, type Prompt, type Reply, replyTo, type ToolCall } from "./Reply.ts"
import {
  errorResponse,
  eventStreamResponse,
  jsonResponse,
  type Moment,
  type SimulatedResponse,
  seconds
} from "./SimulatedResponse.ts"

export const responses = (body: Json, moment: Moment): SimulatedResponse => {
  if (textOf(body["input"]) === undefined && !Array.isArray(body["input"])) {
    return errorResponse("A", moment, 400, "Missing required parameter: 'input'.", {
      code: "missing_required_parameter",
      param: "input"
    })
  }
  const reply = replyTo(promptOf(body))
  if (body["stream"] === true) return eventStreamResponse(events(body, reply, moment))
  return jsonResponse(response(body, moment, reply, [itemOf(reply, moment)]))
}

const promptOf = (body: Json): Prompt => {
  const input = body["input"]
  const items = typeof input === "string" ? [{ content: input }] : listOf(input).map(objectOf)
  const last: Json | undefined = items.at(-1)
  const texts = items.map((item: Json) => contentText(item["content"]) || (textOf(item["output"]) ?? ""))
  return {
    model: textOf(body["model"]) ?? "",
    text: [textOf(body["instructions"]) ?? "", ...texts].join("\n"),
    lastUserText: last?.["type"] === "function_call_output" ? undefined : contentText(last?.["content"]),
    tools: listOf(body["tools"])
      .map(objectOf)
      .filter((tool) => tool["type"] === "function")
      .map((tool) => ({ name: textOf(tool["name"]) ?? "", schema: objectOf(tool["parameters"]) })),
    maxTokens: numberOf(body["max_output_tokens"])
  }
}

/** `reply` is `undefined` while a stream is not complete. */
const response = (body: Json, moment: Moment, reply: Reply | undefined, output: ReadonlyArray<unknown>) => ({
  id: `resp_${moment.serial}`,
  object: "response",
  created_at: seconds(moment),
  status: reply === undefined ? "in_progress" : reply.finish === "length" ? "incomplete" : "completed",
  background: false,
  error: null,
  incomplete_details: reply?.finish === "length" ? { reason: "max_output_tokens" } : null,
  instructions: body["instructions"] ?? null,
  max_output_tokens: body["max_output_tokens"] ?? null,
  metadata: body["metadata"] ?? {},
  model: body["model"],
  output,
  parallel_tool_calls: true,
  previous_response_id: body["previous_response_id"] ?? null,
  reasoning: { effort: null, summary: null },
  service_tier: "default",
  store: false,
  temperature: body["temperature"] ?? 1,
  text: { format: { type: "text" } },
  tool_choice: body["tool_choice"] ?? "auto",
  tools: body["tools"] ?? [],
  top_p: body["top_p"] ?? 1,
  truncation: "disabled",
  usage: reply === undefined ? null : usageOf(reply)
})

const itemOf = (reply: Reply, moment: Moment) =>
  reply.call === undefined
    ? messageItem(moment, "completed", [textPart(reply.text)])
    : callItem(moment, "completed", reply.call, JSON.stringify(reply.call.arguments))

const messageItem = (moment: Moment, status: string, content: ReadonlyArray<unknown>) => ({
  type: "message",
  id: `msg_${moment.serial}`,
  status,
  role: "assistant",
  content
})

const callItem = (moment: Moment, status: string, call: ToolCall, args: string) => ({
  type: "function_call",
  id: `fc_${moment.serial}`,
  call_id: `call_${moment.serial}`,
  name: call.name,
  arguments: args,
  status
})

const textPart = (text: string) => ({ type: "output_text", text, annotations: [], logprobs: [] })

const events = (body: Json, reply: Reply, moment: Moment) => {
  const begun = response(body, moment, undefined, [])
  const ended = response(body, moment, reply, [itemOf(reply, moment)])
  const last = reply.finish === "length" ? "response.incomplete" : "response.completed"
  return [
    { type: "response.created", response: begun },
    { type: "response.in_progress", response: begun },
    ...(reply.call === undefined ? textEvents(reply, moment) : callEvents(reply.call, moment)),
    { type: last, response: ended }
  ].map((event, sequence) => ({ ...event, sequence_number: sequence }))
}

const textEvents = (reply: Reply, moment: Moment) => {
  const where = { item_id: `msg_${moment.serial}`, output_index: 0, content_index: 0 }
  return [
    { type: "response.output_item.added", output_index: 0, item: messageItem(moment, "in_progress", []) },
    { type: "response.content_part.added", ...where, part: textPart("") },
    ...reply.pieces.map((delta) => ({ type: "response.output_text.delta", ...where, delta, logprobs: [] })),
    { type: "response.output_text.done", ...where, text: reply.text, logprobs: [] },
    { type: "response.content_part.done", ...where, part: textPart(reply.text) },
    { type: "response.output_item.done", output_index: 0, item: itemOf(reply, moment) }
  ]
}

const callEvents = (call: ToolCall, moment: Moment) => {
  const where = { item_id: `fc_${moment.serial}`, output_index: 0 }
  const args = JSON.stringify(call.arguments)
  return [
    { type: "response.output_item.added", output_index: 0, item: callItem(moment, "in_progress", call, "") },
    ...halves(args).map((delta) => ({ type: "response.function_call_arguments.delta", ...where, delta })),
    { type: "response.function_call_arguments.done", ...where, name: call.name, arguments: args },
    { type: "response.output_item.done", output_index: 0, item: callItem(moment, "completed", call, args) }
  ]
}

const usageOf = ({ usage }: Reply) => ({
  input_tokens: usage.input,
  input_tokens_details: { cached_tokens: usage.cached, cache_write_tokens: 0 },
  output_tokens: usage.output,
  output_tokens_details: { reasoning_tokens: usage.reasoning },
  total_tokens: usage.input + usage.output
})
