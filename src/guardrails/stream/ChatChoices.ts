import { Option, Schema } from "effect"

/** Returns `choice 0` of the lane `choice 0 content`; `undefined` for a lane that is in no choice of a chat stream. */
export const choiceOf = (lane: string): string | undefined =>
  lane.startsWith("choice ") ? lane.slice(0, lane.indexOf(" ", 7)) : undefined

/** Returns the choices in which this event begins or continues tool calls. */
export const choicesWithTools = (data: string): ReadonlyArray<string> => {
  if (!data.includes('"tool_calls"')) return []
  const { choices } = Option.getOrElse(decodeChunk(data), () => noChoices)
  return choices.flatMap(({ delta, index }, position) =>
    Array.isArray(delta?.tool_calls) ? [`choice ${index ?? position}`] : []
  )
}

const Chunk = Schema.Struct({
  choices: Schema.Array(
    Schema.Struct({
      index: Schema.optionalKey(Schema.Number),
      delta: Schema.optionalKey(Schema.Struct({ tool_calls: Schema.optionalKey(Schema.Unknown) }))
    })
  )
})
const decodeChunk = Schema.decodeUnknownOption(Schema.fromJsonString(Chunk))
const noChoices: typeof Chunk.Type = { choices: [] }
