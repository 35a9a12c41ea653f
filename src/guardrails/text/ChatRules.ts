import type { TextPlace } from "./Place.ts"
import {
  address,
  binary,
  ending,
  eventObject,
  freeText,
  id,
  jsonText,
  modelName,
  object,
  type Role,
  type Rule,
  reference,
  scores,
  serviceText,
  text,
  token,
  unknown,
  unknownMember,
  unknownPiece
} from "./Rule.ts"
import { outputFormat, toolChoice, toolDefinitions } from "./ToolRules.ts"

const file = object({
  file_data: binary("file", "document"),
  file_id: reference("file"),
  filename: text("file name")
})

/** A string, or parts with text, pictures, audio and files. */
const parts = (place: TextPlace, role: Role, lane: string): Rule => {
  const content = text(place, { role, lane })
  const reasoning = text("reasoning", { role, lane: "reasoning" })
  const others = role === "delta" ? unknownMember : unknown
  return text(place, { role, lane })
    .withOthers(others)
    .withTypes({
      text: { text: content },
      refusal: { refusal: text("refusal", { role, lane: "refusal" }) },
      thinking: { thinking: reasoning },
      image_url: { image_url: address("picture").with({ url: address("picture") }) },
      input_audio: { input_audio: object({ data: binary("audio") }) },
      file: { file }
    })
}

const annotations = text("citation").with({ type: token, file_id: id })

/** What the assistant says: a message of a request's history or of a response, or a piece of it in a stream. */
const assistantMembers = (role: Role): Readonly<Record<string, Rule>> => {
  const reasoning = (lane: string) => text("reasoning", { role, lane })
  const called = object({
    name: token,
    arguments: jsonText("tool arguments", { role, lane: "arguments" }),
    input: text("tool arguments", { role, lane: "arguments" })
  })
  return {
    content: parts("message content", role, "content"),
    refusal: text("refusal", { role, lane: "refusal" }),
    reasoning_content: reasoning("reasoning_content"),
    reasoning: reasoning("reasoning"),
    thinking: reasoning("thinking"),
    // In a stream, the signature arrives after the text.
    reasoning_details: text("reasoning", { role, signed: role === "copy" ? "with signature" : "always" })
      .with({ data: binary() })
      .numbered({ name: "detail", member: "index" }),
    tool_calls: object({ function: called, custom: called }).numbered({ name: "tool", member: "index" }),
    function_call: object({
      name: token,
      arguments: jsonText("tool arguments", { role, lane: "function_call arguments" })
    }),
    audio: object({ data: binary("audio"), transcript: text("audio transcript", { role, lane: "audio transcript" }) }),
    annotations
  }
}

const requestMessages = object({ ...assistantMembers("copy"), name: text("participant name") })
requestMessages.variantBy = "role"
const toolResult = { content: parts("tool result", "copy", "content"), name: token }
requestMessages.withTypes({ tool: toolResult, function: toolResult })

/** The members that requests of OpenAI's routes share. */
export const requestMembers: Readonly<Record<string, Rule>> = {
  model: modelName,
  metadata: freeText("metadata"),
  user: text("user"),
  safety_identifier: text("user"),
  stop: text("stop sequence"),
  tools: toolDefinitions,
  tool_choice: toolChoice
}

export const chatRequest: Rule = object({
  ...requestMembers,
  messages: requestMessages,
  prediction: object({ content: parts("message content", "copy", "content") }),
  functions: toolDefinitions,
  function_call: toolChoice,
  response_format: outputFormat,
  audio: object({ voice: token })
})

export const error: Rule = text("error message", { ends: "all" }).with({
  code: token,
  param: token,
  metadata: freeText("error message")
})

const responseMembers: Readonly<Record<string, Rule>> = { error, metadata: freeText("metadata") }

const choice = { name: "choice", member: "index" }
const message = object(assistantMembers("copy"))

/** A whole answer. Streams may hold one, and then its texts repeat the lanes. */
export const chatResponse: Rule = object({
  ...responseMembers,
  choices: object({ message, logprobs: scores }).numbered(choice)
})

const completionsChoice = (role: Role): Readonly<Record<string, Rule>> => ({
  text: text("message content", { role, lane: "text" }),
  reasoning: text("reasoning", { role, lane: "reasoning" }),
  logprobs: scores,
  finish_reason: ending("scope")
})

/** Some servers send the chunks of one route on the other. */
const chunkChoice = eventObject({
  ...completionsChoice("delta"),
  delta: eventObject(assistantMembers("delta")),
  message
}).numbered(choice)

/** A chunk of chat and of completions. */
export const chunk: Rule = eventObject({ ...responseMembers, delta: unknownPiece, choices: chunkChoice })

/** A service may send the events of any family. */
export const anyChunk: Rule = serviceText("loose")
anyChunk.with({ choices: chunkChoice.like().withOthers(anyChunk) })

export const completionsRequest: Rule = object({
  ...requestMembers,
  prompt: text("prompt"),
  suffix: text("prompt")
})
export const completionsResponse: Rule = object({
  ...responseMembers,
  choices: object(completionsChoice("copy")).numbered(choice)
})

export const embeddingsRequest: Rule = object({ ...requestMembers, input: text("embedding input") })
export const embeddingsResponse: Rule = object({
  ...responseMembers,
  data: object({ embedding: binary() }).withOthers(unknown)
})
