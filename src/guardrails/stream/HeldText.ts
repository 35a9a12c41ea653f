import { Option, Predicate, Schema } from "effect"
import type { EventSpan } from "../text/EventReader.ts"
import { withLiterals } from "../text/Literals.ts"
import * as SequenceNumbers from "./SequenceNumbers.ts"
import { type SseEvent, withData, withEnd, withName } from "./SseEvents.ts"

/** An event with pieces of texts that are partly held. The held texts are sent in an event like this one. */
export interface Template {
  readonly event: SseEvent
  readonly data: string
  readonly spans: ReadonlyArray<EventSpan>
}

/**
 * Returns an event with a text for each of the lanes. It repeats nothing else of the template than ids, numbers and short
 * words beside the texts: no other text, no usage, and no piece of audio.
 */
export const eventWith = (
  { data, event, spans }: Template,
  texts: ReadonlyMap<string, string>,
  number: number
): SseEvent => {
  const waiting = new Map(texts)
  const placed: Array<string> = []
  const marked = withLiterals(
    data,
    spans.map((span) => {
      const text = span.role === "delta" ? waiting.get(span.lane) : undefined
      if (text === undefined) return { ...span, value: "" }
      waiting.delete(span.lane)
      return { ...span, value: marker + (placed.push(text) - 1) }
    })
  )
  const json = Schema.decodeUnknownSync(Json)(marked)
  const complete = withEnd(event)
  const started = decodeStartedBlock(json)
  if (Option.isSome(started)) {
    return withData(withName(complete, blockDelta), continuedBlock(started.value, placed.join("")))
  }
  const only = withoutOthers(json, placed, 0, false)
  const changed = only === undefined ? unpruned(marked, placed) : JSON.stringify(only)
  return withData(complete, SequenceNumbers.withNumber(changed, number))
}

/** A block of Anthropic's messages starts once. The text with which it starts continues in an event of another type. */
const blockDelta = "content_block_delta"
const Json = Schema.fromJsonString(Schema.Unknown)
const StartedBlock = Schema.Struct({
  type: Schema.Literal("content_block_start"),
  index: Schema.optionalKey(Schema.Number),
  content_block: Schema.Struct({ type: Schema.String })
})
const decodeStartedBlock = Schema.decodeUnknownOption(StartedBlock)

const continuedBlock = ({ content_block: block, index }: typeof StartedBlock.Type, text: string): string => {
  const delta = block.type === "thinking" ? { type: "thinking_delta", thinking: text } : { type: "text_delta", text }
  return JSON.stringify({ type: blockDelta, index, delta })
}

/** Stands for a held text, with the text's position in the list, while its place is searched. */
const marker = "\u0000held"

const unpruned = (marked: string, texts: ReadonlyArray<string>): string =>
  marked.replace(/"\\u0000held(\d+)"/g, (_, position: string) => JSON.stringify(texts[Number(position)] ?? ""))

/** Replaces the markers by the texts, and drops what is not beside one. Returns `undefined` without a marker. */
const withoutOthers = (json: unknown, texts: ReadonlyArray<string>, depth: number, isDelta: boolean): unknown => {
  if (typeof json === "string") return json.startsWith(marker) ? texts[Number(json.slice(marker.length))] : undefined
  if (depth > maxDepth) return undefined
  if (Array.isArray(json)) {
    const kept = json.map((item) => withoutOthers(item, texts, depth + 1, isDelta)).filter((item) => item !== undefined)
    return kept.length === 0 ? undefined : kept
  }
  if (!Predicate.isObject(json)) return undefined
  const members = Object.entries(json).flatMap(([key, value]) =>
    isDelta && labels.has(key)
      ? []
      : [[key, value, withoutOthers(value, texts, depth + 1, isDelta || key === "delta")] as const]
  )
  if (members.every(([, , kept]) => kept === undefined)) return undefined
  return Object.fromEntries(
    members.flatMap(([key, value, kept]) => (kept !== undefined ? [[key, kept]] : isShort(value) ? [[key, value]] : []))
  )
}

/** A delta names the role, and the id and name of a tool call, once. Some clients append repetitions. */
const labels: ReadonlySet<string> = new Set(["role", "id", "name"])

/** No provider nests the text of an event more deeply. */
const maxDepth = 64

const isShort = (value: unknown): boolean =>
  value === null ||
  typeof value === "number" ||
  typeof value === "boolean" ||
  (typeof value === "string" && value.length <= 64)
