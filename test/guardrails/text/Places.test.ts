import { assert, describe, it } from "@effect/vitest"
import { ofRequest, ofResponse } from "../../../src/guardrails/text/DocumentText.ts"
import { EventReader, type EventSpan } from "../../../src/guardrails/text/EventReader.ts"
import { type Place, textPlaces, textRoutes, unreadablePlaces } from "../../../src/guardrails/text/Place.ts"
import { routeRules } from "../../../src/guardrails/text/Routes.ts"
import type { Role, Rule } from "../../../src/guardrails/text/Rule.ts"
import type { PlaceRow } from "./PlaceRow.ts"
import { places } from "./Places.ts"

const isUnreadable = (place: Place) => unreadablePlaces.some((one) => one === place)
const nameOf = ({ delivery, direction, place, route }: Cell) => `${route} ${direction} ${delivery}: ${place}`
type Cell = Pick<PlaceRow, "route" | "direction" | "delivery" | "place">

const value = (json: string, { end, start }: { start: number; end: number }): string =>
  JSON.parse(json.slice(start, end))
const jsonOf = (example: unknown) => (typeof example === "string" ? example : JSON.stringify(example))

const person = "Zoë, “zoë@example.com”\n\\o/ 😀"
const binary = "QUJDREVGR0g="

describe("the table of places", () => {
  const plain = places.filter(({ delivery, place }) => delivery === "plain" && !isUnreadable(place))
  const copies = places.filter(({ delivery, place }) => delivery === "copy" && !isUnreadable(place))
  const deltas = places.filter(({ delivery }) => delivery === "delta")
  const unreadable = places.filter(({ place }) => isUnreadable(place))
  const named = (rows: ReadonlyArray<PlaceRow>) => rows.map((row) => [nameOf(row), row] as const)

  it("has rows for every place and every route", () => {
    const shown = new Set<string>(places.flatMap(({ place, route }) => [place, route]))
    assert.deepStrictEqual(
      [...textPlaces, ...unreadablePlaces, ...textRoutes].filter((name) => !shown.has(name)),
      []
    )
  })

  it("has a row for every place that a rule can find", () => {
    const rows = new Set(places.map(nameOf))
    assert.deepStrictEqual(
      cells()
        .filter(({ deliveries, ...cell }) => !deliveries.some((delivery) => rows.has(nameOf({ ...cell, delivery }))))
        .map((cell) => nameOf({ ...cell, delivery: cell.deliveries[0] })),
      []
    )
  })

  it.each(named(plain))("%s is found in a document", (_, row) => {
    const text = row.writing === "json" ? JSON.stringify({ to: person }) : person
    const [json = ""] = row.example([text]).map(jsonOf)
    const found = (row.direction === "request" ? ofRequest : ofResponse)(row.route, json)?.spans ?? []
    assert.deepStrictEqual(
      found.flatMap((span) => (value(json, span) === text ? [[span.place, span.writing, span.signed]] : [])),
      [[row.place, row.writing, row.signed]]
    )
  })

  it.each(named(copies))("%s is found whole in an event", (_, row) => {
    const [json = ""] = row.example([person]).map(jsonOf)
    const found = new EventReader(row.route).read(undefined, json)?.spans ?? []
    assert.deepStrictEqual(
      found.flatMap((span) => (value(json, span) === person ? [[span.place, span.writing, span.signed]] : [])),
      [[row.place, row.writing, row.signed]]
    )
  })

  it.each(named(deltas))("%s arrives in pieces on one lane, which ends", (_, row) => {
    const pieces = ["Zoë, “zo", "ë@exa", "mple.co", "m”\n"]
    const reader = new EventReader(row.route)
    const spans: Array<EventSpan> = []
    const texts: Array<string> = []
    const ended: Array<string> = []
    for (const event of row.example(pieces)) {
      const json = jsonOf(event)
      const found = reader.read(undefined, json)
      for (const span of found?.spans ?? []) {
        if (!pieces.includes(value(json, span))) continue
        spans.push(span)
        texts.push(value(json, span))
      }
      const ends = found?.ends ?? []
      ended.push(...(ends === "all" ? spans.map(({ lane }) => lane) : ends))
    }
    assert.deepStrictEqual(texts, pieces)
    const [first] = spans
    if (first === undefined) throw new Error("no piece was found")
    for (const { lane, place, role, signed, writing } of spans) {
      assert.notStrictEqual(role, "copy")
      assert.deepStrictEqual([lane, place, writing], [first.lane, row.place, row.writing])
      assert.strictEqual(signed, row.signed)
    }
    assert.include(ended, first.lane)
  })

  it.each(named(unreadable))("%s is reported and is no text", (_, row) => {
    const [json = ""] = row.example([binary]).map(jsonOf)
    const found =
      row.delivery === "copy"
        ? new EventReader(row.route).read(undefined, json)
        : (row.direction === "request" ? ofRequest : ofResponse)(row.route, json)
    assert.include(found?.unreadable ?? [], row.place)
    assert.deepStrictEqual(
      found?.spans.filter((span) => value(json, span).includes(binary)),
      []
    )
  })
})

interface ReachableCell extends Omit<Cell, "delivery"> {
  /** A piece of unknown text may be shown as a piece or as a whole text. */
  readonly deliveries: readonly [Cell["delivery"], ...ReadonlyArray<Cell["delivery"]>]
}

/** The places of all rules that a document or an event can reach. */
const cells = (): ReadonlyArray<ReachableCell> =>
  textRoutes.flatMap((route) => {
    const { event, events, request, response } = routeRules[route]
    const plain = (direction: Cell["direction"], rule: Rule): ReadonlyArray<ReachableCell> =>
      reachable(rule).map(({ place }) => ({ route, direction, deliveries: ["plain"], place }))
    // The events of all families are those of the other routes.
    const ofStreams = route === "other" ? [] : [event, ...Object.values(events)]
    return [
      ...plain("request", request),
      ...plain("response", response),
      ...ofStreams
        .flatMap(({ rule }) => reachable(rule))
        .map(
          ({ place, role }): ReachableCell => ({
            route,
            direction: "response",
            deliveries: role === "loose" ? ["delta", "copy"] : [role],
            place
          })
        )
    ]
  })

interface Reachable {
  readonly place: Place
  readonly role: Role
}

const reachable = (root: Rule): ReadonlyArray<Reachable> => {
  const seen = new Set([root])
  for (const rule of seen) {
    for (const next of [...rule.members.values(), ...rule.variants.values(), rule.others]) seen.add(next)
  }
  return [...seen].flatMap(({ meaning }): ReadonlyArray<Reachable> => {
    if (meaning._tag === "Text") return [{ place: meaning.place, role: meaning.role }]
    const fallback = "place" in meaning ? [meaning.place] : []
    const unread = meaning.unreadable === undefined ? [] : [meaning.unreadable]
    return [...fallback, ...unread].map((place) => ({ place, role: "copy" }))
  })
}
