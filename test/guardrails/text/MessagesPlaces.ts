import { formatSchema, type PlaceExample, type PlaceRow, pieces, rows } from "./PlaceRow.ts"

const image = (data: string) => ({ type: "image", source: { type: "base64", media_type: "image/png", data } })

/** Blocks that deltas can continue. */
const growing: ReadonlyArray<PlaceExample> = [
  ["message content", (text) => ({ text, type: "text" })],
  ["reasoning", (text) => ({ thinking: text, signature: "c2ln", type: "thinking" }), { signed: true }],
  ["compaction summary", (text) => ({ content: text, signature: "c2ln", type: "compaction" }), { signed: true }]
]

/** Blocks that arrive whole. */
const whole: ReadonlyArray<PlaceExample> = [
  ["citation", (text) => ({ type: "text", text: "a", citations: [{ type: "char_location", cited_text: text }] })],
  ["tool arguments", (text) => ({ type: "tool_use", id: "toolu_1", name: "f", input: { type: { id: text } } })],
  ["member name", (text) => ({ type: "tool_use", id: "toolu_1", name: "f", input: { to: [{ [text]: null }] } })],
  ["tool result", (text) => ({ type: "tool_result", tool_use_id: "toolu_1", content: text })],
  [
    "tool result",
    (text) => ({ content: [{ type: "web_search_result", title: text }], type: "web_search_tool_result" })
  ],
  ["document", (text) => ({ type: "document", source: { data: text, media_type: "text/plain", type: "text" } })],
  ["document", (text) => ({ type: "search_result", source: "s", title: text, content: [] })],
  ["file", (data) => ({ type: "document", source: { type: "base64", media_type: "application/pdf", data } })],
  ["picture", image],
  ["tool definition", (text) => ({ type: "mcp_tool_listing", tools: [{ name: "f", description: text }] })],
  ["other text", (text) => ({ type: "unheard_of", words: text })]
]

const request = { route: "messages", direction: "request", delivery: "plain" } as const
const response = { route: "messages", direction: "response", delivery: "plain" } as const
const copy = { route: "messages", direction: "response", delivery: "copy" } as const

const blocks = [...growing, ...whole]
const inRequest = (block: unknown) => ({ messages: [{ role: "user", content: [block] }] })

const requestExamples: ReadonlyArray<PlaceExample> = [
  ["message content", (text) => ({ messages: [{ role: "user", content: text }] })],
  ["system prompt", (text) => ({ system: [{ type: "text", text }] })],
  ["tool result", (text) => inRequest({ type: "tool_result", content: [{ type: "text", text }] })],
  ["tool definition", (text) => ({ tools: [{ name: "f", input_schema: formatSchema(text) }] })],
  ["output format", (text) => ({ output_config: { format: { type: "json_schema", schema: formatSchema(text) } } })],
  ["metadata", (text) => ({ metadata: { user_id: text } })],
  ["stop sequence", (text) => ({ stop_sequences: [text] })],
  ["other text", (text) => ({ unheard_of: { words: text } })]
]

const responseExamples: ReadonlyArray<PlaceExample> = [
  ["stop sequence", (text) => ({ stop_sequence: text })],
  ["refusal", (text) => ({ stop_details: { type: "refusal", category: null, explanation: text } })],
  ["error message", (text) => ({ type: "error", error: { type: "api_error", message: text } })],
  ["other text", (text) => ({ unheard_of: { words: text } })]
]

const delta = (type: string, name: string) => (text: string) => ({
  type: "content_block_delta",
  index: 2,
  delta: { [name]: text, type }
})

const batchRequest = { route: "message_batches", direction: "request", delivery: "plain" } as const
const batchResponse = { route: "message_batches", direction: "response", delivery: "plain" } as const
const inBatch = (params: unknown) => ({ requests: [{ custom_id: "first", params }] })
const inResult = (message: unknown) => ({ custom_id: "first", result: { type: "succeeded", message } })

export const messagesPlaces: ReadonlyArray<PlaceRow> = [
  ...rows(request, requestExamples),
  ...rows(request, blocks, inRequest),
  ...rows(response, responseExamples),
  ...rows(response, blocks, (block) => ({ type: "message", role: "assistant", content: [block] })),
  ...rows(copy, responseExamples.slice(0, 2), (members) => ({ type: "message_delta", delta: members })),
  ...rows(copy, responseExamples.slice(2)),
  ...rows(copy, blocks, (block) => ({ type: "message_start", message: { content: [block] } })),
  ...rows(copy, whole, (block) => ({ type: "content_block_start", index: 0, content_block: block })),
  ...rows(copy, [
    [
      "citation",
      (text) => ({
        type: "content_block_delta",
        index: 0,
        delta: { type: "citations_delta", citation: { title: text } }
      })
    ]
  ]),
  ...pieces(
    "messages",
    [
      ["message content", delta("text_delta", "text")],
      ["tool arguments", delta("input_json_delta", "partial_json"), { writing: "json" }],
      ["reasoning", delta("thinking_delta", "thinking"), { signed: true }],
      ["compaction summary", delta("compaction_delta", "content"), { signed: true }],
      ["other text", delta("unheard_of_delta", "words")],
      ["other text", (text) => ({ type: "content_block_delta", index: 2, words: text })],
      ["other text", (text) => ({ type: "message_delta", delta: { words: text } })],
      ["other text", (text) => ({ type: "unheard_of", words: text })]
    ],
    [{ type: "content_block_stop", index: 2 }, { type: "message_stop" }]
  ),
  ...pieces(
    "messages",
    growing.map(([place, example, options]) => [
      place,
      (text) => ({ type: "content_block_start", content_block: example(text), index: 2 }),
      options
    ]),
    [{ type: "content_block_stop", index: 2 }]
  ),
  ...rows(batchRequest, requestExamples, inBatch),
  ...rows(batchRequest, blocks, (block) => inBatch(inRequest(block))),
  ...rows(batchResponse, responseExamples, inResult),
  ...rows(batchResponse, blocks, (block) => inResult({ content: [block] }))
]
