import {
  formatSchema,
  functionTool,
  namedMember,
  type PlaceExample,
  type PlaceRow,
  pieces,
  requestExamples,
  rows
} from "./PlaceRow.ts"

const assistant: ReadonlyArray<PlaceExample> = [
  ["message content", (text) => ({ content: text })],
  ["refusal", (text) => ({ refusal: text })],
  ["reasoning", (text) => ({ reasoning_content: text })],
  [
    "tool arguments",
    (text) => ({
      tool_calls: [{ index: 0, id: "call_1", type: "function", function: { name: "f", arguments: text } }]
    }),
    { writing: "json" }
  ],
  ["audio transcript", (text) => ({ audio: { id: "audio_1", transcript: text } })]
]

const audio: PlaceExample = ["audio", (data) => ({ audio: { id: "audio_1", data } })]
const citation: PlaceExample = [
  "citation",
  (text) => ({ annotations: [{ type: "url_citation", url_citation: { title: text, url: "https://example.com" } }] })
]
const reasoningDetails: PlaceExample = [
  "reasoning",
  (text) => ({ reasoning_details: [{ type: "reasoning.text", text, signature: "c2ln", index: 0 }] }),
  { signed: true }
]

const parts: ReadonlyArray<PlaceExample> = [
  ["message content", (text) => ({ type: "text", text })],
  ["picture", (data) => ({ type: "image_url", image_url: { url: `data:image/png;base64,${data}` } })],
  ["audio", (data) => ({ type: "input_audio", input_audio: { data, format: "wav" } })],
  ["file", (data) => ({ type: "file", file: { file_data: `data:application/pdf;base64,${data}` } })],
  ["file name", (text) => ({ type: "file", file: { file_id: "file_1", filename: text } })],
  ["document", (text) => ({ type: "file", file: { file_data: text } })]
]

const request = { route: "chat", direction: "request", delivery: "plain" } as const
const response = { route: "chat", direction: "response", delivery: "plain" } as const

const responseExamples: ReadonlyArray<PlaceExample> = [
  ["token probabilities", (token) => ({ choices: [{ index: 0, logprobs: { content: [{ token }] } }] })],
  ["error message", (text) => ({ error: { message: text, type: "server_error", code: "500" } })],
  ["metadata", (text) => ({ metadata: { name: text } })],
  namedMember,
  ["other text", (text) => ({ choices: [{ index: 0, unheard_of: text }] })]
]

const whole = (message: unknown) => ({ choices: [{ index: 0, message, finish_reason: "stop" }] })
const delta = (examples: ReadonlyArray<PlaceExample>): ReadonlyArray<PlaceExample> =>
  examples.map(([place, example, options]) => [
    place,
    (text) => ({ object: "chat.completion.chunk", choices: [{ delta: example(text), index: 1, finish_reason: null }] }),
    options
  ])
const finish = [{ choices: [{ index: 1, delta: {}, finish_reason: "stop" }] }]

const completions = { route: "completions", direction: "response", delivery: "plain" } as const
const completionExamples: ReadonlyArray<PlaceExample> = [
  ["message content", (text) => ({ choices: [{ index: 0, text, finish_reason: null }] })],
  ["reasoning", (text) => ({ choices: [{ index: 0, reasoning: text }] })]
]

/** Chunks of chat and of completions arrive on both routes. */
const chunkPlaces = (route: "chat" | "completions"): ReadonlyArray<PlaceRow> => {
  const copy = { route, direction: "response", delivery: "copy" } as const
  return [
    ...pieces(route, delta([...assistant, reasoningDetails, ["other text", (text) => ({ thoughts: text })]]), finish),
    ...pieces(route, completionExamples, [{ choices: [{ index: 0, text: "", finish_reason: "length" }] }]),
    ...pieces(
      route,
      [
        ["other text", (text) => ({ choices: [{ index: 0, unheard_of: text }] })],
        ["other text", (text) => ({ unheard_of: [{ new: text }] })]
      ],
      ["[DONE]"]
    ),
    ...rows(copy, [...assistant, citation, reasoningDetails], whole),
    ...rows(copy, parts, (part) => whole({ content: [part] })),
    ...rows(copy, delta([audio, citation])),
    ...rows(copy, responseExamples)
  ]
}

export const chatPlaces: ReadonlyArray<PlaceRow> = [
  ...rows(request, [...assistant, reasoningDetails, citation], (message) => ({
    messages: [Object.assign({ role: "assistant" }, message)]
  })),
  ...rows(request, parts, (part) => ({ messages: [{ role: "user", content: [part] }] })),
  ...rows(request, [
    ["message content", (text) => ({ messages: [{ role: "user", content: text }] })],
    ["participant name", (text) => ({ messages: [{ role: "user", name: text, content: "hi" }] })],
    ["tool result", (text) => ({ messages: [{ content: text, tool_call_id: "call_1", role: "tool" }] })],
    ["tool definition", (text) => ({ tools: [{ type: "function", function: functionTool(text) }] })],
    [
      "output format",
      (text) => ({ response_format: { type: "json_schema", json_schema: { schema: formatSchema(text) } } })
    ],
    ...requestExamples
  ]),
  ...rows(response, [...assistant, audio, citation, reasoningDetails], whole),
  ...rows(response, parts, (part) => whole({ content: [part] })),
  ...rows(response, responseExamples),
  ...rows(completions, [...completionExamples, ...responseExamples]),
  ...(["chat", "completions"] as const).flatMap(chunkPlaces),
  ...rows({ ...completions, direction: "request" }, [
    ["prompt", (text) => ({ prompt: ["before", text] })],
    ["tool definition", (text) => ({ tools: [{ type: "function", function: functionTool(text) }] })],
    ...requestExamples
  ]),
  ...rows({ route: "embeddings", direction: "request", delivery: "plain" }, [
    ["embedding input", (text) => ({ input: [text] })],
    ["tool definition", (text) => ({ tools: [{ type: "function", function: functionTool(text) }] })],
    ...requestExamples
  ]),
  ...rows({ route: "embeddings", direction: "response", delivery: "plain" }, [
    ["error message", (text) => ({ error: { message: text } })],
    ["metadata", (text) => ({ metadata: { name: text } })],
    namedMember,
    ["other text", (text) => ({ data: [{ index: 0, embedding: "AAAA", note: text }] })]
  ])
]
