import {
  formatSchema,
  functionTool,
  type PlaceExample,
  type PlaceRow,
  pieces,
  requestExamples,
  rows
} from "./PlaceRow.ts"

const message = (content: unknown) => ({ type: "message", role: "user", content: [content] })

/** Items of a request's input and of a response's output. */
const items: ReadonlyArray<PlaceExample> = [
  ["message content", (text) => message({ text, type: "output_text", annotations: [] })],
  ["refusal", (text) => message({ refusal: text, type: "refusal" })],
  ["picture", (data) => message({ type: "input_image", image_url: `data:image/png;base64,${data}` })],
  ["file", (data) => message({ type: "input_file", file_data: data })],
  ["file name", (text) => message({ type: "input_file", filename: text })],
  ["document", (text) => message({ type: "input_file", file_data: text })],
  ["audio", (data) => message({ type: "input_audio", input_audio: { data, format: "mp3" } })],
  ["audio transcript", (text) => message({ type: "output_audio", data: "AAAA", transcript: text })],
  [
    "citation",
    (text) => message({ type: "output_text", text: "a", annotations: [{ type: "url_citation", title: text }] })
  ],
  ["token probabilities", (token) => message({ type: "output_text", text: "a", logprobs: [{ token }] })],
  [
    "reasoning",
    (text) => ({ summary: [{ type: "summary_text", text }], encrypted_content: "AAAA", type: "reasoning" })
  ],
  ["tool arguments", (text) => ({ arguments: text, name: "f", type: "function_call" }), { writing: "json" }],
  ["tool arguments", (text) => ({ input: text, name: "f", type: "custom_tool_call" })],
  ["tool arguments", (text) => ({ type: "web_search_call", action: { type: "search", query: text } })],
  ["tool result", (text) => ({ type: "function_call_output", call_id: "call_1", output: text })],
  ["tool result", (text) => ({ type: "mcp_call", name: "f", output: text, error: null })],
  ["tool result", (text) => ({ output: [{ stdout: text, outcome: { type: "exit" } }], type: "shell_call_output" })],
  ["code", (text) => ({ code: text, container_id: "cntr_1", type: "code_interpreter_call" })],
  ["code", (text) => ({ action: { commands: ["ls", text] }, type: "shell_call" })],
  ["prompt", (text) => ({ type: "image_generation_call", result: "AAAA", revised_prompt: text })],
  ["tool definition", (text) => ({ type: "mcp_list_tools", tools: [functionTool(text)] })],
  ["output format", (text) => ({ type: "configuration_update", text: { format: { schema: formatSchema(text) } } })],
  ["other text", (text) => ({ type: "unheard_of_call", words: text })]
]

/** What a response repeats of its request. */
const shared: ReadonlyArray<PlaceExample> = [
  ...requestExamples,
  ["system prompt", (text) => ({ instructions: text })],
  ["prompt", (text) => ({ prompt: { id: "pmpt_1", variables: { city: text } } })],
  ["tool definition", (text) => ({ tools: [{ type: "function", ...functionTool(text) }] })],
  ["output format", (text) => ({ text: { format: { type: "json_schema", name: "n", schema: formatSchema(text) } } })]
]

const failed: PlaceExample = ["error message", (text) => ({ error: { code: "server_error", message: text } })]

const request = { route: "responses", direction: "request", delivery: "plain" } as const
const response = { route: "responses", direction: "response", delivery: "plain" } as const
const copy = { route: "responses", direction: "response", delivery: "copy" } as const

const numbers = { item_id: "msg_1", output_index: 1, content_index: 0, sequence_number: 3 }
const event = (type: string, members: object) => ({ ...numbers, ...members, type: `response.${type}` })
const delta = (type: string) => (text: string) => event(`${type}.delta`, { delta: text })
const last = [event("output_item.done", { item: {} })]

export const responsesPlaces: ReadonlyArray<PlaceRow> = [
  ...rows(request, [["message content", (text) => ({ input: text })], ...shared]),
  ...rows(request, items, (item) => ({ input: [item] })),
  ...rows(response, [...shared, failed, ["message content", (text) => ({ output_text: text })]]),
  ...rows(response, items, (item) => ({ output: [item] })),
  ...rows(copy, items, (item) => event("output_item.done", { item })),
  ...rows(copy, [...shared, failed], (members) => event("completed", { response: members })),
  ...rows(copy, items, (item) => event("completed", { response: { output: [{ type: "reasoning" }, item] } })),
  ...rows(copy, [
    ["message content", (text) => event("output_text.done", { text })],
    ["message content", (text) => event("content_part.done", { part: { text, type: "output_text" } })],
    ["refusal", (text) => event("refusal.done", { refusal: text })],
    ["reasoning", (text) => event("reasoning_text.done", { text })],
    ["reasoning", (text) => event("reasoning_summary_text.done", { summary_index: 0, text })],
    ["reasoning", (text) => event("reasoning_summary_part.done", { part: { type: "summary_text", text } })],
    ["tool arguments", (text) => event("function_call_arguments.done", { arguments: text }), { writing: "json" }],
    ["tool arguments", (text) => event("mcp_call_arguments.done", { arguments: text }), { writing: "json" }],
    ["tool arguments", (text) => event("custom_tool_call_input.done", { input: text })],
    ["code", (text) => event("code_interpreter_call_code.done", { code: text })],
    ["code", (text) => event("shell_call_command.done", { command_index: 0, command: text })],
    ["tool result", (text) => event("shell_call_output_content.done", { output: [{ stderr: text }] })],
    [
      "citation",
      (text) => event("output_text.annotation.added", { annotation: { type: "url_citation", title: text } })
    ],
    ["audio", (data) => event("audio.delta", { delta: data })],
    ["picture", (data) => event("image_generation_call.partial_image", { partial_image_b64: data })],
    ["error message", (text) => ({ type: "error", message: text, code: "server_error", param: null })],
    ["other text", (text) => event("unheard_of.finished", { words: text })]
  ]),
  ...pieces(
    "responses",
    [
      ["message content", delta("output_text")],
      ["refusal", delta("refusal")],
      ["reasoning", delta("reasoning_text")],
      ["reasoning", (text) => event("reasoning_summary_text.delta", { summary_index: 2, delta: text })],
      ["tool arguments", delta("function_call_arguments"), { writing: "json" }],
      ["tool arguments", delta("mcp_call_arguments"), { writing: "json" }],
      ["tool arguments", delta("custom_tool_call_input")],
      ["code", delta("code_interpreter_call_code")],
      ["code", (text) => event("shell_call_command.delta", { command_index: 1, delta: text })],
      [
        "tool result",
        (text) => event("shell_call_output_content.delta", { command_index: 1, delta: { stdout: text } })
      ],
      ["other text", delta("unheard_of")],
      ["other text", (text) => event("unheard_of.delta", { words: text })],
      ["other text", (text) => event("output_text.delta", { delta: "a", words: text })]
    ],
    [...last, "[DONE]"]
  ),
  ...pieces(
    "responses",
    [["audio transcript", (text) => ({ type: "response.audio.transcript.delta", delta: text })]],
    [{ type: "response.audio.transcript.done" }]
  )
]
