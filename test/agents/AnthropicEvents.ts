import { type Answer, type Json, newId, smallUsage, type ToolCall, words } from "./Answer.ts"

interface Block {
  readonly start: Json
  readonly deltas: ReadonlyArray<Json>
}

/** The events of a streamed message. As with the vendor, `max_tokens` cuts a longer text. */
export const of = (request: Json, { call, text, thought, usage = smallUsage }: Answer): ReadonlyArray<Json> => {
  const written = words(text ?? "")
  const kept = written.slice(0, Number(request["max_tokens"]))
  const blocks = [
    ...(thought === undefined ? [] : [thinkingBlock(thought)]),
    ...(text === undefined ? [] : [textBlock(kept)]),
    ...(call === undefined ? [] : [toolBlock(call)])
  ]
  const stop_reason = kept.length < written.length ? "max_tokens" : call === undefined ? "end_turn" : "tool_use"
  const input = {
    input_tokens: usage.input,
    cache_read_input_tokens: usage.cacheRead,
    cache_creation_input_tokens: usage.cacheWrite
  }
  const message = {
    id: newId("msg"),
    type: "message",
    role: "assistant",
    model: request["model"],
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { ...input, output_tokens: 1 }
  }
  return [
    { type: "message_start", message },
    ...blocks.flatMap(({ deltas, start }, index) => [
      { type: "content_block_start", index, content_block: start },
      ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
      { type: "content_block_stop", index }
    ]),
    {
      type: "message_delta",
      delta: { stop_reason, stop_sequence: null },
      usage: { ...input, output_tokens: usage.output }
    },
    { type: "message_stop" }
  ]
}

const thinkingBlock = ({ signature, text }: NonNullable<Answer["thought"]>): Block => ({
  start: { type: "thinking", thinking: "", signature: "" },
  deltas: [
    ...words(text).map((thinking) => ({ type: "thinking_delta", thinking })),
    { type: "signature_delta", signature }
  ]
})

const textBlock = (words: ReadonlyArray<string>): Block => ({
  start: { type: "text", text: "" },
  deltas: words.map((text) => ({ type: "text_delta", text }))
})

const toolBlock = ({ input, tool }: ToolCall): Block => ({
  start: { type: "tool_use", id: newId("toolu"), name: tool, input: {} },
  deltas: [{ type: "input_json_delta", partial_json: JSON.stringify(input) }]
})
