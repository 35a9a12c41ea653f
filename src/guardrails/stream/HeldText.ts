import { Option, Predicate, Schema } from "effect"
import { detached } from "../text/Detached.ts"
import type { EventSpan } from "../text/EventReader.ts"
import { withLiterals } from "../text/Literals.ts"
import * as SequenceNumbers from "./SequenceNumbers.ts"
import { type SseEvent, withData, withEnd, withName } from "./SseEvents.ts"

/** An event with pieces of texts that are partly held. The held texts are sent in an event like this one. */
export class Template {
  #event: SseEvent
  #data: string
  #spans: ReadonlyArray<EventSpan>
  #outline: Outline | undefined

  constructor(event: SseEvent, data: string, spans: ReadonlyArray<EventSpan>) {
    this.#event = event
    this.#data = data
    this.#spans = spans
  }

  get event(): SseEvent {
    return this.#event
  }

  /** It is read once for all lanes of the event, which end one by one. */
  get outline(): Outline {
    this.#outline ??= outlineOf(this.#data, this.#spans)
    return this.#outline
  }

  /** Forgets what no event with a text of these lanes repeats. */
  shrink(lanes: ReadonlySet<string>): void {
    const { isStartOf, ...outline } = this.outline
    const marked = new Map([...lanes].map((lane, position) => [lane, marker + position]))
    const json = Schema.decodeUnknownSync(Json)(JSON.stringify(prune(outline, marked)))
    this.#outline = { json, places: placesIn(json, marked), isStartOf }
    const lines = this.#event.lines.flatMap(({ field, lineEnd, raw, value }) =>
      field === "" ? [] : [{ field, lineEnd, raw: detached(raw), value: detached(value) }]
    )
    this.#event = withData({ lines, end: this.#event.end }, "")
    this.#data = ""
    this.#spans = []
  }
}

/** The data as an object, and where in it each lane has its last piece. A client sees the last of equal member names. */
interface Outline {
  readonly json: unknown
  readonly places: ReadonlyMap<string, Place>
  /** The block that the event starts. */
  readonly isStartOf: typeof StartedBlock.Type | undefined
}

/** A member or an item, and the place of the object or array around it. */
interface Place {
  readonly container: object
  readonly key: string
  readonly parent: Place | undefined
}

/**
 * Returns an event with a text for each of the lanes. It repeats nothing else of the template than ids, numbers and short
 * words beside the texts: no other text, no usage, and no piece of audio.
 */
export const eventWith = (template: Template, texts: ReadonlyMap<string, string>, number: number): SseEvent => {
  const { event, outline } = template
  const complete = withEnd(event)
  if (outline.isStartOf !== undefined) {
    const text = [...texts.values()].join("")
    return withData(withName(complete, blockDelta), continuedBlock(outline.isStartOf, text))
  }
  const json = JSON.stringify(prune(outline, texts))
  return withData(complete, SequenceNumbers.withNumber(json, number))
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
  return JSON.stringify({ type: blockDelta, index, delta: deltaOf(block.type, text) })
}

const deltaOf = (block: string, text: string): object => {
  switch (block) {
    case "thinking":
      return { type: "thinking_delta", thinking: text }
    case "compaction":
      return { type: "compaction_delta", content: text }
    default:
      return { type: "text_delta", text }
  }
}

/** Stands for a text while the places are searched. The position of its span follows it. */
const marker = "\u0000held"

const outlineOf = (data: string, spans: ReadonlyArray<EventSpan>): Outline => {
  const lanes = new Map<string, number>()
  const marked = withLiterals(
    data,
    spans.map((span, position) => {
      if (span.role !== "delta") return { ...span, value: marker }
      lanes.set(span.lane, position)
      return { ...span, value: marker + position }
    })
  )
  const json = Schema.decodeUnknownSync(Json)(marked)
  const markers = new Map([...lanes].map(([lane, position]) => [lane, marker + position]))
  return { json, places: placesIn(json, markers), isStartOf: Option.getOrUndefined(decodeStartedBlock(json)) }
}

/** Returns the places of the strings `markers`, by their lanes. */
const placesIn = (json: unknown, markers: ReadonlyMap<string, string>): ReadonlyMap<string, Place> => {
  const found = new Map<string, Place>()
  const pending: Array<{ readonly value: unknown; readonly place: Place | undefined }> = [
    { value: json, place: undefined }
  ]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { place, value } = next
    if (typeof value === "string" && place !== undefined) found.set(value, place)
    if (!Predicate.isObjectOrArray(value)) continue
    for (const [key, member] of Object.entries(value))
      pending.push({ value: member, place: { container: value, key, parent: place } })
  }
  const places = new Map<string, Place>()
  for (const [lane, text] of markers) {
    const place = found.get(text)
    if (place !== undefined) places.set(lane, place)
  }
  return places
}

type Kept = Map<object, Map<string, object | string>>

/** Keeps the texts of the lanes, the containers around them, and what is short beside them. */
const prune = ({ json, places }: Pick<Outline, "json" | "places">, texts: ReadonlyMap<string, string>): unknown => {
  const kept: Kept = new Map()
  for (const [lane, text] of texts) {
    let child: object | string = text
    for (let place = places.get(lane); place !== undefined; place = place.parent) {
      const children = kept.get(place.container) ?? new Map<string, object | string>()
      kept.set(place.container, children.set(place.key, child))
      child = place.container
    }
  }
  return Predicate.isObjectOrArray(json) ? write(json, kept, false) : [...texts.values()].join("")
}

const write = (container: object, kept: Kept, isDelta: boolean): unknown => {
  const children = kept.get(container) ?? new Map<string, object | string>()
  const written = (key: string, child: object | string) =>
    typeof child === "string" ? child : write(child, kept, isDelta || key === "delta")
  if (Array.isArray(container)) return [...children].map(([key, child]) => written(key, child))
  const members: Record<string, unknown> = {}
  let besides = 0
  for (const [key, value] of Object.entries(container).slice(0, mostMembers)) {
    const child = children.get(key)
    if (child !== undefined) members[key] = written(key, child)
    else if (isShort(key, value) && !(isDelta && labels.has(key)) && besides++ < mostBesides) members[key] = value
  }
  for (const [key, child] of children) if (!Object.hasOwn(members, key)) members[key] = written(key, child)
  return members
}

/** A delta names the role, and the id and name of a tool call, once. Some clients append repetitions. */
const labels: ReadonlySet<string> = new Set(["role", "id", "name"])

/** An event with many members would otherwise be repeated for each of its lanes. No provider has as many. */
const mostMembers = 64
const mostBesides = 16

const isShort = (key: string, value: unknown): boolean =>
  key.length <= 64 &&
  (value === null ||
    typeof value === "number" ||
    typeof value === "boolean" ||
    (typeof value === "string" && value.length <= 64 && !value.startsWith(marker)))
