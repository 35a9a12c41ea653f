import { chatPlaces } from "./ChatPlaces.ts"
import { messagesPlaces } from "./MessagesPlaces.ts"
import { namedMember, type PlaceExample, type PlaceRow, pieces, rows } from "./PlaceRow.ts"
import { responsesPlaces } from "./ResponsesPlaces.ts"

const anyExamples: ReadonlyArray<PlaceExample> = [["other text", (text) => ({ a: [{ b: text }] })], namedMember]
const anyRoute = { route: "other", delivery: "plain" } as const

/**
 * Where text stands: each route, direction and delivery with its places, and an example for each. A rule that finds text
 * in a place without a row fails the test of this table.
 */
export const places: ReadonlyArray<PlaceRow> = [
  ...chatPlaces,
  ...responsesPlaces,
  ...messagesPlaces,
  ...rows({ ...anyRoute, direction: "request" }, anyExamples),
  ...rows({ ...anyRoute, direction: "response" }, anyExamples),
  ...rows({ ...anyRoute, direction: "response", delivery: "copy" }, [namedMember]),
  ...(["other", "embeddings", "message_batches"] as const).flatMap((route) =>
    pieces(route, [["other text", (text) => ({ parts: [{ text }] })]], ["[DONE]"])
  )
]
