import type { Place, TextPlace, TextRoute, UnreadablePlace, Writing } from "../../../src/guardrails/text/Place.ts"

export type Direction = "request" | "response"

/** One cell of the table: a place of a route, with examples of the documents or events that hold it. */
export interface PlaceRow {
  readonly route: TextRoute
  readonly direction: Direction
  /** `delta`: the text arrives in pieces. `copy`: an event holds the whole text. */
  readonly delivery: "plain" | "delta" | "copy"
  readonly place: Place
  readonly writing: Writing
  readonly signed: boolean
  /** The documents or the data of the events in their order, with the pieces where the place is. */
  readonly example: (pieces: ReadonlyArray<string>) => ReadonlyArray<unknown>
}

/** The text to show in an example, or the base64 of a place that nobody can read. */
export type Example = (text: string) => unknown

export type PlaceExample = readonly [
  place: TextPlace | UnreadablePlace,
  example: Example,
  options?: { readonly writing?: Writing; readonly signed?: boolean } | undefined
]

type Cell = Pick<PlaceRow, "route" | "direction" | "delivery">

/** Rows of documents or events that hold a whole text: `around` puts the example where the cell has it. */
export const rows = (
  cell: Cell,
  examples: ReadonlyArray<PlaceExample>,
  around: (example: unknown) => unknown = (example) => example
): ReadonlyArray<PlaceRow> =>
  examples.map(([place, example, options]) => ({
    writing: "plain",
    signed: false,
    ...cell,
    ...options,
    place,
    example: (pieces) => [around(example(pieces.join("")))]
  }))

/** Rows of texts in pieces: `piece` is an event with one, `last` are the events that end the lane. */
export const pieces = (
  route: TextRoute,
  examples: ReadonlyArray<PlaceExample>,
  last: ReadonlyArray<unknown>
): ReadonlyArray<PlaceRow> =>
  examples.map(([place, piece, options]) => ({
    route,
    direction: "response",
    delivery: "delta",
    writing: "plain",
    signed: false,
    ...options,
    place,
    example: (texts) => [...texts.map((text) => piece(text)), ...last]
  }))

const schema = (text: string) => ({ type: "object", properties: { type: { type: "string", description: text } } })

/** Users choose the names of these members. A number has no text, so only the name holds the value. */
export const namedMember: PlaceExample = ["member name", (text) => ({ metadata: { [text]: 1 } })]

const png = (data: string) => `data:image/png;base64,${data}`

/** Definitions that requests of OpenAI's routes share. Some of them come back in responses. */
export const requestExamples: ReadonlyArray<PlaceExample> = [
  ["metadata", (text) => ({ metadata: { id: text } })],
  namedMember,
  ["user", (text) => ({ user: text })],
  ["stop sequence", (text) => ({ stop: [text] })],
  ["picture", (data) => ({ tools: [{ type: "image_generation", input_image_mask: { image_url: png(data) } }] })],
  ["file", (data) => ({ tools: [{ type: "shell", environment: { skills: [{ type: "inline", source: { data } }] } }] })],
  ["other text", (text) => ({ unheard_of: [{ new: text }] })]
]

export const functionTool = (text: string) => ({
  name: "f",
  description: "d",
  parameters: schema(text)
})

export const formatSchema = schema
