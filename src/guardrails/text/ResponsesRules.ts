import { error, requestMembers } from "./ChatRules.ts"
import type { TextPlace } from "./Place.ts"
import {
  address,
  binary,
  freeText,
  id,
  jsonText,
  object,
  type Role,
  type Rule,
  reference,
  scores,
  text,
  token,
  unknown
} from "./Rule.ts"
import { outputFormat, toolDefinitions } from "./ToolRules.ts"

export const citations: Rule = text("citation")
  .with({ type: token, file_id: id, container_id: id })
  .numbered({ name: "annotation" })

const file = {
  filename: text("file name"),
  file_id: reference("file"),
  file_url: address("file"),
  file_data: binary("file", "document")
}
const picture = { image_url: address("picture"), file_id: reference("picture") }

/** A string, or parts: in requests `input_…`, in responses `output_text`, `refusal` and `reasoning_text`. */
const parts = (place: TextPlace, role: Role = "copy"): Rule => {
  const lane = ""
  return text(place, { role, lane })
    .numbered({ name: "part" })
    .withOthers(unknown)
    .with({ text: text(place, { role, lane }), annotations: citations, logprobs: scores })
    .withTypes({
      refusal: { refusal: text("refusal", { role, lane }) },
      reasoning_text: { text: text("reasoning", { role, lane }) },
      summary_text: { text: text("reasoning", { role, lane }) },
      input_image: picture,
      computer_screenshot: picture,
      input_file: file,
      input_audio: { input_audio: object({ data: binary("audio") }) },
      output_audio: { data: binary("audio"), transcript: text("audio transcript", { role, lane }) }
    })
}

/** One part on its own, as the events of content parts carry it: the event has its number. */
export const onePart: Rule = parts("message content")
export const oneSummary: Rule = object({ text: text("reasoning", { lane: "" }) })
/** A client continues the text of a part that is added by the deltas that follow. */
export const addedPart: Rule = parts("message content", "loose")
export const addedSummary: Rule = object({ text: text("reasoning", { role: "loose", lane: "" }) })

const result = text("tool result").with({ type: token, file_id: id })
const call = freeText("tool arguments").with({ type: token })
const error_ = text("tool result").with({ code: token, type: token })

/** A command's output, also as the events of shell calls carry it. */
export const shellOutput: Rule = object({
  stdout: text("tool result", { lane: "stdout" }),
  stderr: text("tool result", { lane: "stderr" })
})
const shellOutputs = shellOutput.like().numbered({ name: "command" })

const codeOf = (role: Role) => ({ code: text("code", { role, lane: "code" }), fingerprint: id })
const requestedOf = (role: Role) => ({
  name: token,
  server_label: token,
  arguments: jsonText("tool arguments", { role, lane: "arguments" })
})

/** Items of a request's `input` and of a response's `output`. An unknown type has texts of no special place. */
const itemsOf = (role: Role): Rule => {
  const requested = requestedOf(role)
  const code = codeOf(role)
  return object({
    content: parts("message content", role),
    output: result,
    error: error_,
    name: token,
    namespace: token,
    approve: token,
    environment: token
  }).withTypes({
    reasoning: {
      summary: object({ text: text("reasoning", { role, lane: "" }) }).numbered({ name: "summary" }),
      content: parts("reasoning", role)
    },
    function_call: requested,
    function_call_output: { output: parts("tool result") },
    custom_tool_call: { input: text("tool arguments", { role, lane: "input" }) },
    custom_tool_call_output: { output: parts("tool result") },
    mcp_call: requested,
    mcp_approval_request: requested,
    mcp_list_tools: { server_label: token, tools: toolDefinitions },
    tool_search_call: { arguments: jsonText("tool arguments") },
    tool_search_output: { tools: toolDefinitions },
    additional_tools: { tools: toolDefinitions },
    configuration_update: { text: object({ format: outputFormat }) },
    web_search_call: { action: call.like().with({ sources: text("citation").with({ type: token }) }) },
    file_search_call: {
      queries: text("tool arguments"),
      results: text("tool result").with({ filename: text("file name"), attributes: freeText("tool result") })
    },
    computer_call: { action: call, actions: call, pending_safety_checks: result },
    computer_call_output: { output: parts("tool result").numbered(), acknowledged_safety_checks: result },
    image_generation_call: { result: binary("picture"), revised_prompt: text("prompt") },
    code_interpreter_call: { ...code, outputs: result.like().with({ url: address("picture") }) },
    program: code,
    program_output: { result },
    shell_call: { action: object({ commands: text("code", { lane: "" }).numbered({ name: "command" }) }) },
    shell_call_output: { output: shellOutputs },
    local_shell_call: { action: call.like().with({ command: text("code") }) },
    apply_patch_call: { operation: call }
  })
}

export const items: Rule = itemsOf("copy")
/** A client continues the texts of an item that is added by the deltas that follow. */
export const addedItem: Rule = itemsOf("loose").numbered({ name: "output" })

/** Without a type, an item is a message; with one, it is never a string. */
const input = items.likeWithTypes(text("message content", { lane: "" }).meaning)

/** Inside a response, `instructions` and the definitions repeat the request. */
const shared: Readonly<Record<string, Rule>> = {
  ...requestMembers,
  instructions: input.likeWithTypes(text("system prompt").meaning),
  prompt: object({ version: token, variables: freeText("prompt").withOthers(parts("prompt").numbered()) }),
  text: object({ format: outputFormat, verbosity: token }),
  conversation: token,
  reasoning: token
}
export const responsesRequest: Rule = object({ ...shared, input })

export const responsesResponse: Rule = object({
  ...shared,
  error,
  output: items.numbered({ name: "output" }),
  output_text: text("message content")
})
