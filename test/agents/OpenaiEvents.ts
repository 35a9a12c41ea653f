import { type Answer, type Json, newId, smallUsage, type ToolCall, type Usage, words } from "./Answer.ts"

interface Item {
  /** As it stands when it is done. */
  readonly item: Json
  readonly deltas: ReadonlyArray<Json>
}

/** The events of a streamed response. As with the vendor, `max_output_tokens` cuts a longer text. */
export const of = (request: Json, { call, text, thought, usage = smallUsage }: Answer): ReadonlyArray<Json> => {
  const written = words(text ?? "")
  const bound = request["max_output_tokens"]
  const kept = typeof bound === "number" ? written.slice(0, bound) : written
  const items = [
    ...(thought === undefined ? [] : [reasoningItem(thought)]),
    ...(text === undefined ? [] : [messageItem(kept)]),
    ...(call === undefined ? [] : [callItem(call)])
  ]
  const status = kept.length < written.length ? "incomplete" : "completed"
  const head = { id: newId("resp"), object: "response", created_at: 1_700_000_000, model: request["model"] }
  const response = {
    ...head,
    status,
    incomplete_details: status === "incomplete" ? { reason: "max_output_tokens" } : null,
    output: items.map(({ item }) => item),
    usage: usageOf(usage)
  }
  return [
    { type: "response.created", response: { ...head, status: "in_progress", output: [], usage: null } },
    ...items.flatMap(({ deltas, item }, output_index) => [
      { type: "response.output_item.added", output_index, item: { ...item, status: "in_progress" } },
      ...deltas.map((delta) => ({ ...delta, output_index, item_id: item["id"] })),
      { type: "response.output_item.done", output_index, item }
    ]),
    { type: `response.${status}`, response }
  ].map((event, sequence_number) => ({ ...event, sequence_number }))
}

const reasoningItem = ({ signature, text }: NonNullable<Answer["thought"]>): Item => ({
  item: {
    type: "reasoning",
    id: newId("rs"),
    summary: [{ type: "summary_text", text }],
    encrypted_content: signature
  },
  deltas: []
})

const messageItem = (words: ReadonlyArray<string>): Item => ({
  item: {
    type: "message",
    id: newId("msg"),
    status: "completed",
    role: "assistant",
    content: [{ type: "output_text", text: words.join(""), annotations: [] }]
  },
  deltas: words.map((delta) => ({ type: "response.output_text.delta", content_index: 0, delta }))
})

const callItem = ({ input, tool: name }: ToolCall): Item => {
  const call = { call_id: newId("call"), status: "completed", name }
  return {
    item:
      typeof input === "string"
        ? { type: "custom_tool_call", id: newId("ctc"), ...call, input }
        : { type: "function_call", id: newId("fc"), ...call, arguments: JSON.stringify(input) },
    deltas: []
  }
}

/** OpenAI counts cached input as part of the input, and reports no writes to the cache. */
const usageOf = ({ cacheRead, input, output }: Usage): Json => ({
  input_tokens: input + cacheRead,
  input_tokens_details: { cached_tokens: cacheRead },
  output_tokens: output,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: input + cacheRead + output
})
