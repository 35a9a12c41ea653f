import { error } from "./ChatRules.ts"
import { deltaOfBlock, deltaOfMessage, startedBlock, startedMessage, stoppedBlock } from "./MessagesRules.ts"
import type { TextPlace, Writing } from "./Place.ts"
import {
  addedItem,
  addedPart,
  addedSummary,
  citations,
  items,
  onePart,
  oneSummary,
  responsesResponse,
  shellOutput
} from "./ResponsesRules.ts"
import { binary, eventObject, object, type Rule, scores, text, token, unknownPiece } from "./Rule.ts"

/** What an event of one type holds, and which lanes get no more pieces after it. */
export interface EventType {
  readonly rule: Rule
  /** Names after the event's own numbers, as in `output 1` + `arguments`; `scope`: the lanes of its first number. */
  readonly ends: ReadonlyArray<string> | "scope" | "all"
}

const numbers = [
  { name: "output", member: "output_index" },
  { name: "part", member: "content_index" },
  { name: "summary", member: "summary_index" },
  { name: "command", member: "command_index" },
  { name: "annotation", member: "annotation_index" }
]

const event = (members: Readonly<Record<string, Rule>>, ends: EventType["ends"] = []): EventType => ({
  rule: eventObject(members).numbered(...numbers),
  ends
})

/** The pair of events `<name>.delta` and `<name>.done`. The latter repeats the text in the member `whole`. */
const pair = (name: string, whole: string, place: TextPlace, lane = "", writing: Writing = "plain") => ({
  [`${name}.delta`]: event({ delta: text(place, { role: "delta", lane, writing }), logprobs: scores }),
  [`${name}.done`]: event({ [whole]: text(place, { lane, writing }), logprobs: scores }, [lane])
})

const nothing = event({})
const withResponse = event({ response: responsesResponse })
const lastResponse = event({ response: responsesResponse }, "all")

/** An error of either family. */
export const responsesError = event({ message: text("error message"), code: token, param: token, error }, "all")

/** The event types of OpenAI's responses. Other types are read by `unknownEvent`. */
export const responsesEvents: Readonly<Record<string, EventType>> = {
  error: responsesError,
  "response.created": withResponse,
  "response.queued": withResponse,
  "response.in_progress": withResponse,
  "response.completed": lastResponse,
  "response.incomplete": lastResponse,
  "response.failed": lastResponse,
  "response.output_item.added": event({ item: addedItem }),
  "response.output_item.done": event({ item: items }, "scope"),
  "response.content_part.added": event({ part: addedPart }),
  "response.content_part.done": event({ part: onePart }, [""]),
  ...pair("response.output_text", "text", "message content"),
  "response.output_text.annotation.added": event({ annotation: citations }),
  ...pair("response.refusal", "refusal", "refusal"),
  ...pair("response.reasoning_text", "text", "reasoning"),
  ...pair("response.reasoning_summary_text", "text", "reasoning"),
  "response.reasoning_summary_part.added": event({ part: addedSummary }),
  "response.reasoning_summary_part.done": event({ part: oneSummary }, [""]),
  ...pair("response.function_call_arguments", "arguments", "tool arguments", "arguments", "json"),
  ...pair("response.mcp_call_arguments", "arguments", "tool arguments", "arguments", "json"),
  ...pair("response.custom_tool_call_input", "input", "tool arguments", "input"),
  ...pair("response.code_interpreter_call_code", "code", "code", "code"),
  "response.shell_call_command.added": event({ command: text("code", { role: "loose", lane: "" }) }),
  ...pair("response.shell_call_command", "command", "code"),
  "response.shell_call_output_content.delta": event({
    delta: object({
      stdout: text("tool result", { role: "delta", lane: "stdout" }),
      stderr: text("tool result", { role: "delta", lane: "stderr" })
    })
  }),
  "response.shell_call_output_content.done": event({ output: shellOutput }, ["stdout", "stderr"]),
  ...pair("response.audio.transcript", "transcript", "audio transcript", "audio transcript"),
  "response.audio.delta": event({ delta: binary("audio") }),
  "response.audio.done": nothing,
  "response.image_generation_call.partial_image": event({ partial_image_b64: binary("picture") }),
  ...Object.fromEntries(
    [
      ...["code_interpreter_call.in_progress", "code_interpreter_call.interpreting", "code_interpreter_call.completed"],
      ...["compaction.compacting", "file_search_call.in_progress", "file_search_call.searching"],
      ...["file_search_call.completed", "web_search_call.in_progress", "web_search_call.searching"],
      ...["web_search_call.completed", "image_generation_call.in_progress", "image_generation_call.generating"],
      ...["image_generation_call.completed", "mcp_call.in_progress", "mcp_call.completed", "mcp_call.failed"],
      ...["mcp_list_tools.in_progress", "mcp_list_tools.completed", "mcp_list_tools.failed"]
    ].map((name) => [`response.${name}`, nothing])
  )
}

/** The event types of Anthropic's messages. */
export const messagesEvents: Readonly<Record<string, EventType>> = {
  ping: { rule: eventObject({}), ends: [] },
  error: { rule: eventObject({ error }), ends: "all" },
  message_start: { rule: startedMessage, ends: [] },
  content_block_start: { rule: startedBlock, ends: [] },
  content_block_delta: { rule: deltaOfBlock, ends: [] },
  content_block_stop: { rule: stoppedBlock, ends: "scope" },
  message_delta: { rule: deltaOfMessage, ends: [] },
  message_stop: { rule: eventObject({}), ends: "all" }
}

/** A member `delta` is a piece of a text; any other text may be one. */
export const unknownEvent: EventType = {
  rule: eventObject({ delta: unknownPiece, error }).numbered(...numbers, { name: "block", member: "index" }),
  ends: []
}
