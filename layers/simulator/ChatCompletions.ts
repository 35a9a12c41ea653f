import { type Json, listOf, numberOf, objectOf, textOf } from "./Json.ts"
import { contentText, type Prompt, type Reply, replyTo } from "./Reply.ts"
import {
  errorResponse,
  eventStreamResponse,
  jsonResponse,
  type Moment,
  type SimulatedResponse,
  seconds
} from "./SimulatedResponse.ts"

export const chatCompletions = (body: Json, moment: Moment): SimulatedResponse => {
  if (listOf(body["messages"]).length === 0) {
    return errorResponse("A", moment, 400, "Missing required parameter: 'messages'.", {
      code: "missing_required_parameter",
      param: "messages"
    })
  }
  const prompt = promptOf(body)
  const reply = replyTo(prompt)
  if (body["stream"] !== true) return jsonResponse(completion(prompt, reply, moment))
  return eventStreamResponse(chunks(prompt, reply, moment, objectOf(body["stream_options"])["include_usage"] === true))
}

const promptOf = (body: Json): Prompt => {
  const messages = listOf(body["messages"]).map(objectOf)
  const last = messages.at(-1)
  return {
    model: textOf(body["model"]) ?? "",
    text: messages.map((message) => contentText(message["content"])).join("\n"),
    lastUserText: last?.["role"] === "tool" ? undefined : contentText(last?.["content"]),
    tools: listOf(body["tools"]).map((tool) => {
      const definition = objectOf(objectOf(tool)["function"])
      return { name: textOf(definition["name"]) ?? "", schema: objectOf(definition["parameters"]) }
    }),
    maxTokens: numberOf(body["max_completion_tokens"]) ?? numberOf(body["max_tokens"])
  }
}

const finishReasons = { stop: "stop", length: "length", call: "tool_calls" } as const

const completion = (prompt: Prompt, reply: Reply, moment: Moment) => ({
  ...head(prompt, moment, "chat.completion"),
  choices: [
    {
      index: 0,
      message: {
        role: "assistant",
        content: reply.call === undefined ? reply.text : null,
        refusal: null,
        annotations: [],
        ...(reply.call === undefined
          ? {}
          : {
              tool_calls: [
                {
                  id: callId(moment),
                  type: "function",
                  function: { name: reply.call.name, arguments: JSON.stringify(reply.call.arguments) }
                }
              ]
            })
      },
      logprobs: null,
      finish_reason: finishReasons[reply.finish]
    }
  ],
  usage: usageOf(reply)
})

const chunks = (prompt: Prompt, reply: Reply, moment: Moment, withUsage: boolean) => {
  const shared = head(prompt, moment, "chat.completion.chunk")
  // With `include_usage`, every chunk has a `usage`. It is null except in the last chunk, which has no choices.
  const usage = withUsage ? { usage: null } : {}
  const chunk = (delta: Json, finish: string | null = null) => ({
    ...shared,
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
    ...usage
  })
  const deltas =
    reply.call === undefined
      ? [
          chunk({ role: "assistant", content: "", refusal: null }),
          ...reply.pieces.map((piece) => chunk({ content: piece }))
        ]
      : [
          chunk({
            role: "assistant",
            content: null,
            tool_calls: [
              { index: 0, id: callId(moment), type: "function", function: { name: reply.call.name, arguments: "" } }
            ]
          }),
          ...halves(JSON.stringify(reply.call.arguments)).map((part) =>
            chunk({ tool_calls: [{ index: 0, function: { arguments: part } }] })
          )
        ]
  return [
    ...deltas,
    chunk({}, finishReasons[reply.finish]),
    ...(withUsage ? [{ ...shared, choices: [], usage: usageOf(reply) }] : []),
    "[DONE]"
  ]
}

const head = (prompt: Prompt, moment: Moment, object: string) => ({
  id: `chatcmpl-${moment.serial}`,
  object,
  created: seconds(moment),
  model: prompt.model,
  service_tier: "default",
  system_fingerprint: "fp_simulator"
})

const callId = (moment: Moment): string => `call_${moment.serial}`

/** Real streams split the arguments of a tool call at arbitrary places. */
export const halves = (text: string): ReadonlyArray<string> => {
  const characters = [...text]
  const middle = Math.ceil(characters.length / 2)
  return [characters.slice(0, middle).join(""), characters.slice(middle).join("")]
}

const usageOf = ({ usage }: Reply) => ({
  prompt_tokens: usage.input,
  completion_tokens: usage.output,
  total_tokens: usage.input + usage.output,
  prompt_tokens_details: { cached_tokens: usage.cached, audio_tokens: 0 },
  completion_tokens_details: {
    reasoning_tokens: usage.reasoning,
    audio_tokens: 0,
    accepted_prediction_tokens: 0,
    rejected_prediction_tokens: 0
  }
})
