/** JSON as a vendor sends it. */
export type Json = Readonly<Record<string, unknown>>

/** What a model says in one turn, apart from the form in which a vendor sends it. */
export interface ModelAnswer {
  readonly reasoning?: string
  readonly signature?: string
  readonly text?: string
  readonly refusal?: string
  /** The text that a citation quotes. */
  readonly citation?: string
  readonly calls?: ReadonlyArray<ToolCall>
  /** The input of a custom tool. */
  readonly script?: string
}

export interface ToolCall {
  readonly id: string
  readonly tool: string
  /** JSON as the model writes it, with its spaces and escapes. */
  readonly input: string
}

/** An answer in both forms of one vendor. */
export interface Rendered {
  readonly plain: Json
  readonly events: ReadonlyArray<string>
}

const event = (data: Json): string => `data: ${JSON.stringify(data)}\n\n`
const namedEvent = (data: Json): string => `event: ${data["type"]}\n${event(data)}`

/** Splits a text into pieces of `size` UTF-16 units, also within a surrogate pair. */
const piecesOf = (text: string | undefined, size: number): ReadonlyArray<string> =>
  Array.from({ length: Math.ceil((text?.length ?? 0) / size) }, (_, at) =>
    (text ?? "").slice(at * size, (at + 1) * size)
  )

const created = 1_763_640_000

/** A chat completion whose choices take turns in the stream. */
export const chat = (answers: ReadonlyArray<ModelAnswer>, size: number): Rendered => {
  const head = {
    id: "chatcmpl-CkAqm2JXz7uSxvhFYkVgn8dT1mEbW",
    created,
    model: "m",
    system_fingerprint: "fp_44709d6fcb"
  }
  const usage = { prompt_tokens: 10, completion_tokens: 20, total_tokens: 30 }
  const finishOf = ({ calls }: ModelAnswer) => (calls === undefined ? "stop" : "tool_calls")
  const callOf = ({ id, input, tool }: ToolCall) => ({
    id,
    type: "function",
    function: { name: tool, arguments: input }
  })
  const deltasOf = (answer: ModelAnswer): ReadonlyArray<Json> => [
    { role: "assistant", content: "" },
    ...piecesOf(answer.reasoning, size).map((reasoning_content) => ({ reasoning_content })),
    ...piecesOf(answer.text, size).map((content) => ({ content })),
    ...piecesOf(answer.refusal, size).map((refusal) => ({ refusal })),
    ...(answer.calls ?? []).flatMap((call, index) => [
      { tool_calls: [{ index, ...callOf({ ...call, input: "" }) }] },
      ...piecesOf(call.input, size).map((piece) => ({ tool_calls: [{ index, function: { arguments: piece } }] }))
    ])
  ]
  const deltas = answers.map(deltasOf)
  const longest = Math.max(...deltas.map(({ length }) => length))
  const chunk = (members: Json) => event({ object: "chat.completion.chunk", ...head, ...members })
  const events = Array.from({ length: longest + 1 }, (_, turn) =>
    deltas.flatMap((all, index) => {
      const choice = { index, logprobs: null }
      if (turn < all.length) return [chunk({ choices: [{ ...choice, delta: all[turn], finish_reason: null }] })]
      const finish_reason = finishOf(answers[index] ?? {})
      return turn === all.length ? [chunk({ choices: [{ ...choice, delta: {}, finish_reason }] })] : []
    })
  )
  const choices = answers.map((answer, index) => ({
    index,
    message: {
      role: "assistant",
      ...(answer.reasoning !== undefined && { reasoning_content: answer.reasoning }),
      content: answer.text ?? "",
      refusal: answer.refusal ?? null,
      ...(answer.calls && { tool_calls: answer.calls.map(callOf) })
    },
    logprobs: null,
    finish_reason: finishOf(answer)
  }))
  return {
    plain: { object: "chat.completion", ...head, choices, usage },
    events: [...events.flat(), chunk({ choices: [], usage }), "data: [DONE]\n\n"]
  }
}

interface Item {
  readonly item: Json
  /** The item as it is announced. */
  readonly empty: Json
  readonly events: ReadonlyArray<Json>
}

/** A response of OpenAI's newer API, with every event that the vendor sends for it. */
export const responses = (answer: ModelAnswer, size: number): Rendered => {
  const items: ReadonlyArray<Item> = [
    ...(answer.reasoning === undefined ? [] : [reasoningItem(answer.reasoning, answer.signature, size)]),
    ...(answer.text === undefined ? [] : [messageItem("output_text", "text", answer.text, answer.citation, size)]),
    ...(answer.refusal === undefined ? [] : [messageItem("refusal", "refusal", answer.refusal, undefined, size)]),
    ...(answer.calls ?? []).map((call) => callItem(call, size)),
    ...(answer.script === undefined ? [] : [scriptItem(answer.script, size)])
  ]
  const head = {
    id: `resp_${"67cc9641d2a48190bb6a".padEnd(48, "0123456789abcdef")}`,
    object: "response",
    created_at: created
  }
  const request = { model: "m", instructions: null, metadata: {}, tools: [], parallel_tool_calls: true }
  const usage = { input_tokens: 10, output_tokens: 20, total_tokens: 30 }
  const whole = {
    ...head,
    ...request,
    status: "completed",
    error: null,
    incomplete_details: null,
    output: items.map(({ item }) => item),
    usage
  }
  const begun = { ...whole, status: "in_progress", output: [], usage: null }
  const events: ReadonlyArray<Json> = [
    { type: "response.created", response: begun },
    { type: "response.in_progress", response: begun },
    ...items.flatMap(({ empty, events, item }, output_index) => [
      { type: "response.output_item.added", output_index, item: empty },
      ...events.map((event) => ({ item_id: item["id"], output_index, ...event })),
      { type: "response.output_item.done", output_index, item }
    ]),
    { type: "response.completed", response: whole }
  ]
  return {
    plain: whole,
    events: events.map(({ type, ...members }, sequence_number) => namedEvent({ type, sequence_number, ...members }))
  }
}

const reasoningItem = (text: string, encrypted_content: string | undefined, size: number): Item => {
  const part = { type: "summary_text", text }
  const item = { id: "rs_67ccd7eca01881908ff0b5146584e408", type: "reasoning", summary: [part], encrypted_content }
  const at = { summary_index: 0 }
  return {
    item,
    empty: { ...item, summary: [] },
    events: [
      { type: "response.reasoning_summary_part.added", ...at, part: { ...part, text: "" } },
      ...piecesOf(text, size).map((delta) => ({ type: "response.reasoning_summary_text.delta", ...at, delta })),
      { type: "response.reasoning_summary_text.done", ...at, text },
      { type: "response.reasoning_summary_part.done", ...at, part }
    ]
  }
}

const messageItem = (
  kind: "output_text" | "refusal",
  member: string,
  text: string,
  citation: string | undefined,
  size: number
): Item => {
  const annotation = {
    type: "url_citation",
    url: "https://example.test/a",
    start_index: 0,
    end_index: 4,
    title: citation
  }
  const annotations = citation === undefined ? [] : [annotation]
  const partOf = (text: string, annotations: ReadonlyArray<Json>) =>
    kind === "refusal" ? { type: kind, refusal: text } : { type: kind, text, annotations, logprobs: [] }
  const item = {
    id: `msg_${kind}67ccd2bf17f0819081ff3bb2cf6508e6`,
    type: "message",
    status: "completed",
    role: "assistant"
  }
  const at = { content_index: 0 }
  return {
    item: { ...item, content: [partOf(text, annotations)] },
    empty: { ...item, status: "in_progress", content: [] },
    events: [
      { type: "response.content_part.added", ...at, part: partOf("", []) },
      ...piecesOf(text, size).map((delta) => ({
        type: `response.${kind}.delta`,
        ...at,
        delta,
        ...(kind === "output_text" && { logprobs: [], obfuscation: "aB3" })
      })),
      ...annotations.map((annotation, annotation_index) => ({
        type: "response.output_text.annotation.added",
        ...at,
        annotation_index,
        annotation
      })),
      { type: `response.${kind}.done`, ...at, [member]: text, ...(kind === "output_text" && { logprobs: [] }) },
      { type: "response.content_part.done", ...at, part: partOf(text, annotations) }
    ]
  }
}

const callItem = ({ id, input, tool }: ToolCall, size: number): Item => {
  const item = { id: `fc_${id}`, type: "function_call", status: "completed", call_id: id, name: tool, arguments: input }
  return {
    item,
    empty: { ...item, status: "in_progress", arguments: "" },
    events: [
      ...piecesOf(input, size).map((delta) => ({ type: "response.function_call_arguments.delta", delta })),
      { type: "response.function_call_arguments.done", name: tool, arguments: input }
    ]
  }
}

const scriptItem = (input: string, size: number): Item => {
  const item = {
    id: "ctc_67ccd2bf17f0819081ff3bb2",
    type: "custom_tool_call",
    call_id: "call_9aX4",
    name: "run",
    input
  }
  return {
    item,
    empty: { ...item, input: "" },
    events: [
      ...piecesOf(input, size).map((delta) => ({ type: "response.custom_tool_call_input.delta", delta })),
      { type: "response.custom_tool_call_input.done", input }
    ]
  }
}

/** A message of Anthropic's API. */
export const messages = (answer: ModelAnswer, size: number): Rendered => {
  const { citation, reasoning, signature = "", text } = answer
  const cited = {
    type: "char_location",
    document_index: 0,
    document_title: null,
    start_char_index: 0,
    end_char_index: 4
  }
  const citations = citation === undefined ? null : [{ ...cited, cited_text: citation }]
  const blocks: ReadonlyArray<{ readonly block: Json; readonly empty: Json; readonly deltas: ReadonlyArray<Json> }> = [
    ...(reasoning === undefined
      ? []
      : [
          {
            block: { type: "thinking", thinking: reasoning, signature },
            empty: { type: "thinking", thinking: "", signature: "" },
            deltas: [
              ...piecesOf(reasoning, size).map((thinking) => ({ type: "thinking_delta", thinking })),
              { type: "signature_delta", signature }
            ]
          }
        ]),
    ...(text === undefined
      ? []
      : [
          {
            block: { type: "text", text, citations },
            empty: { type: "text", text: "", citations: citations && [] },
            deltas: [
              ...(citations ?? []).map((citation) => ({ type: "citations_delta", citation })),
              ...piecesOf(text, size).map((text) => ({ type: "text_delta", text }))
            ]
          }
        ]),
    ...(answer.calls ?? []).map(({ id, input, tool: name }) => ({
      block: { type: "tool_use", id, name, input: JSON.parse(input) },
      empty: { type: "tool_use", id, name, input: {} },
      deltas: ["", ...piecesOf(input, size)].map((partial_json) => ({ type: "input_json_delta", partial_json }))
    }))
  ]
  const stop_reason = answer.calls === undefined ? "end_turn" : "tool_use"
  const message = { id: "msg_01XFDUDYJgAACzvnptvVoYEL", type: "message", role: "assistant", model: "m" }
  const usage = { input_tokens: 10, output_tokens: 20 }
  return {
    plain: { ...message, content: blocks.map(({ block }) => block), stop_reason, stop_sequence: null, usage },
    events: [
      {
        type: "message_start",
        message: {
          ...message,
          content: [],
          stop_reason: null,
          stop_sequence: null,
          usage: { ...usage, output_tokens: 1 }
        }
      },
      ...blocks.flatMap(({ deltas, empty }, index) => [
        { type: "content_block_start", index, content_block: empty },
        { type: "ping" },
        ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
        { type: "content_block_stop", index }
      ]),
      { type: "message_delta", delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 20 } },
      { type: "message_stop" }
    ].map(namedEvent)
  }
}
