import { Predicate, Schema } from "effect"
import type { EventSpan } from "../text/EventReader.ts"
import { withLiterals } from "../text/Literals.ts"
import * as SequenceNumbers from "./SequenceNumbers.ts"
import { type SseEvent, withData, withName } from "./SseEvents.ts"

/** The last event of a lane whose text is partly held. The held text is sent in an event like this one. */
export interface Template {
  readonly event: SseEvent
  readonly data: string
  readonly spans: ReadonlyArray<EventSpan>
  readonly lane: string
}

/**
 * Returns an event with `text` in the template's lane. It repeats nothing else of the template than ids, numbers and short
 * words beside the text: no other text, no usage, and no piece of audio.
 */
export const eventWith = ({ data, event, lane, spans }: Template, text: string, number: number): SseEvent => {
  const own = spans.find((span) => span.role === "delta" && span.lane === lane)
  const marked = withLiterals(
    data,
    spans.map((span) => ({ ...span, value: span === own ? marker : "" }))
  )
  const json = Schema.decodeUnknownSync(Json)(marked)
  if (Predicate.isObject(json) && json["type"] === "content_block_start") {
    const { content_block: block, index } = Schema.decodeUnknownSync(StartedBlock)(json)
    const delta = block.type === "thinking" ? { type: "thinking_delta", thinking: text } : { type: "text_delta", text }
    return withData(withName(event, blockDelta), JSON.stringify({ type: blockDelta, index, delta }))
  }
  const only = withoutOthers(json, text, 0)
  const changed =
    only === undefined ? marked.replace(JSON.stringify(marker), () => JSON.stringify(text)) : JSON.stringify(only)
  return withData(event, SequenceNumbers.withNumber(changed, number))
}

/** A block of Anthropic's messages starts once. The text with which it starts continues in an event of another type. */
const blockDelta = "content_block_delta"
const Json = Schema.fromJsonString(Schema.Unknown)
const StartedBlock = Schema.Struct({
  index: Schema.optionalKey(Schema.Number),
  content_block: Schema.Struct({ type: Schema.String })
})

/** Stands for the held text while its place is searched. */
const marker = "\u0000held\u0000"

/** Replaces the marker by the text, and drops what is not beside it. Returns `undefined` without a marker. */
const withoutOthers = (json: unknown, text: string, depth: number): unknown => {
  if (json === marker) return text
  if (depth > maxDepth) return undefined
  if (Array.isArray(json)) {
    const kept = json.map((item) => withoutOthers(item, text, depth + 1)).find((item) => item !== undefined)
    return kept === undefined ? undefined : [kept]
  }
  if (!Predicate.isObject(json)) return undefined
  const members = Object.entries(json).map(
    ([key, value]) => [key, value, withoutOthers(value, text, depth + 1)] as const
  )
  if (members.every(([, , kept]) => kept === undefined)) return undefined
  return Object.fromEntries(
    members.flatMap(([key, value, kept]) => (kept !== undefined ? [[key, kept]] : isShort(value) ? [[key, value]] : []))
  )
}

/** No provider nests the text of an event more deeply. */
const maxDepth = 64

const isShort = (value: unknown): boolean =>
  value === null ||
  typeof value === "number" ||
  typeof value === "boolean" ||
  (typeof value === "string" && value.length <= 64)
