import { error } from "./ChatRules.ts"
import type { TextPlace } from "./Place.ts"
import {
  address,
  binary,
  credential,
  ending,
  eventObject,
  freeText,
  id,
  modelName,
  object,
  type Role,
  type Rule,
  reference,
  text,
  token,
  unknown,
  unknownMember
} from "./Rule.ts"
import { outputFormat, toolChoice, toolDefinitions } from "./ToolRules.ts"

export const citations: Rule = text("citation").with({ type: token, file_id: id, encrypted_index: binary() })

/** What a picture or a document is made of. The data of the type `text` is no base64. */
const source = (unreadable: "picture" | "file"): Rule =>
  object({
    data: binary(unreadable, "document"),
    url: address(unreadable),
    file_id: reference(unreadable),
    content: documentContent
  }).withTypes({ text: { data: text("document") } })

/** The blocks of a document: texts and pictures. */
const documentContent = text("document")
const picture = source("picture")
documentContent.withTypes({ image: { source: picture } })

/** Blocks whose text has the place `place`. `role` is that of texts which deltas continue. */
const blocks = (place: TextPlace, role: Role): Rule => {
  const content = text(place, { role, lane: "" })
  // In a stream, the signature arrives after the text.
  const signed = role === "copy" ? "with signature" : "always"
  const rule = text(place, { role, lane: "" })
    .with({ cache_control: token, caller: token, server_name: token, toolset_name: token })
    .numbered({ name: "block" })
    .withOthers(unknown)
  const result = toolResults
  const input = { name: token, input: freeText("tool arguments") }
  const results = { name: token, content: result }
  const document = { source: source("file"), title: text("document"), context: text("document"), citations: unknown }
  return rule.withTypes({
    text: { text: content, citations },
    image: { source: picture },
    document,
    search_result: { source: text("document"), title: text("document"), content: text("document"), citations: unknown },
    thinking: { thinking: text("reasoning", { role, lane: "", signed }), signature: binary() },
    redacted_thinking: { data: binary() },
    tool_use: input,
    server_tool_use: input,
    mcp_tool_use: input,
    tool_result: results,
    mcp_tool_result: results,
    web_search_tool_result: results,
    web_fetch_tool_result: results,
    code_execution_tool_result: results,
    bash_code_execution_tool_result: results,
    text_editor_code_execution_tool_result: results,
    tool_search_tool_result: results,
    advisor_tool_result: results,
    container_upload: { file_id: reference("file") },
    compaction: { content: text("compaction summary", { role, lane: "", signed }) },
    tool_addition: { tool: toolDefinitions },
    tool_removal: { tool: toolDefinitions },
    mcp_tool_listing: { tools: toolDefinitions },
    browser_state: { tabs: result, state_changes: result }
  })
}

/** What tools return: a string, blocks, or objects whose texts are all the tool's. */
const toolResults = text("tool result").with({ encrypted_stdout: binary(), tool_name: token, file_type: token })
const resultDocument = text("tool result").with({ source: source("file") })
toolResults.withTypes({
  image: { source: picture },
  document: { source: source("file") },
  code_execution_output: { file_id: reference("file") },
  bash_code_execution_output: { file_id: reference("file") },
  web_fetch_result: { content: resultDocument }
})

const contentBlocks = blocks("message content", "copy")

const container = id.like().with({ name: token, skills: token })

export const messagesRequest: Rule = object({
  model: modelName,
  messages: object({ content: contentBlocks }),
  system: blocks("system prompt", "copy"),
  tools: toolDefinitions,
  tool_choice: toolChoice,
  metadata: freeText("metadata"),
  stop_sequences: text("stop sequence"),
  output_config: object({ format: outputFormat }),
  output_format: outputFormat,
  mcp_servers: object({ name: token, url: address(), authorization_token: credential, tool_configuration: token }),
  container
})

const stopDetails = text("refusal").with({ type: token, category: token })

export const messagesResponse: Rule = object({
  error,
  content: contentBlocks,
  stop_sequence: text("stop sequence"),
  stop_details: stopDetails,
  container
})

/** The events of a stream, by their type. */
export const startedMessage: Rule = eventObject({ message: messagesResponse })

const block = { name: "block", member: "index" }

export const startedBlock: Rule = eventObject({
  content_block: blocks("message content", "delta").numbered()
}).numbered(block)

export const deltaOfBlock: Rule = eventObject({
  delta: unknownMember.like().withTypes({
    text_delta: { text: text("message content", { role: "delta", lane: "" }) },
    input_json_delta: { partial_json: text("tool arguments", { role: "delta", lane: "", writing: "json" }) },
    thinking_delta: { thinking: text("reasoning", { role: "delta", lane: "", signed: "always" }) },
    signature_delta: { type: ending("scope"), signature: binary() },
    citations_delta: { citation: citations },
    compaction_delta: { content: text("compaction summary", { role: "delta", lane: "", signed: "always" }) }
  })
}).numbered(block)

export const stoppedBlock: Rule = eventObject({}).numbered(block)

export const deltaOfMessage: Rule = eventObject({
  delta: eventObject({
    stop_reason: ending("all"),
    stop_sequence: text("stop sequence"),
    stop_details: stopDetails,
    container
  })
})

const batchRequest = object({ params: messagesRequest })
export const batchesRequest: Rule = object({ requests: batchRequest })

/** A batch, a list of them, or one line of its results. */
export const batchesResponse: Rule = object({
  error,
  results_url: address(),
  data: object({ results_url: address() }),
  result: object({ error, message: messagesResponse })
})
