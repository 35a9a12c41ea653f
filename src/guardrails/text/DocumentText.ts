import { nodesOf } from "./JsonTape.ts"
import type { Place, TextRoute } from "./Place.ts"
import { read, type TextSpan } from "./Reader.ts"
import { routeRules } from "./Routes.ts"
import type { Rule } from "./Rule.ts"

/** What a request or a plain response holds. */
export interface DocumentText {
  /** In the order of the document. An empty string has no span. */
  readonly spans: ReadonlyArray<TextSpan>
  /** The places whose content is no text, each once. */
  readonly unreadable: ReadonlyArray<Place>
}

/** Finds the texts of a request; `undefined` if it is no JSON. */
export const ofRequest = (route: TextRoute, json: string): DocumentText | undefined =>
  textOf(routeRules[route].request, json, false)

/** Finds the texts of a response that is no event stream; `undefined` if it is no JSON. A batch's results are JSON lines. */
export const ofResponse = (route: TextRoute, json: string): DocumentText | undefined =>
  textOf(routeRules[route].response, json, route === "message_batches")

const textOf = (rule: Rule, json: string, several: boolean): DocumentText | undefined => {
  const nodes = nodesOf(json, several)
  if (nodes === undefined) return undefined
  const spans: Array<TextSpan> = []
  const unreadable = new Set<Place>()
  read(json, nodes, rule, {
    text: ({ end, start }, { place, writing }, signed) => spans.push({ start, end, place, writing, signed }),
    unreadable: (place) => unreadable.add(place)
  })
  return { spans, unreadable: [...unreadable] }
}
