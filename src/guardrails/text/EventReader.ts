import type { EventType } from "./EventTypes.ts"
import { type Node, nodesOf, valueAt } from "./JsonTape.ts"
import { join, locate, OpenLanes } from "./Lanes.ts"
import type { Place, TextRoute } from "./Place.ts"
import { read, type TextSpan, type Visitor } from "./Reader.ts"
import { routeRules } from "./Routes.ts"
import type { Ends, Role, Rule, TextMeaning } from "./Rule.ts"

/** A piece of a text that arrives over several events. Pieces with the same lane continue each other. */
export interface EventSpan extends TextSpan {
  /** Such as `choice 0 content`, `output 1 part 0` or `block 2`. */
  readonly lane: string
  /** A copy repeats the whole text of its lane, or is a text that arrives whole. */
  readonly role: Role
}

export interface EventText {
  readonly spans: ReadonlyArray<EventSpan>
  /** The lanes that get no more pieces after this event, in which the last pieces may stand. */
  readonly ends: ReadonlyArray<string> | "all"
  readonly unreadable: ReadonlyArray<Place>
}

/** Reads the events of one stream in their order. */
export class EventReader {
  readonly #route: TextRoute
  readonly #lanes = new OpenLanes()

  constructor(route: TextRoute) {
    this.#route = route
  }

  /**
   * Returns the texts of one event: `event` is its SSE event name, `data` its data. The result is `undefined` if the
   * data is no JSON. `[DONE]` ends the stream.
   */
  read(event: string | undefined, data: string): EventText | undefined {
    if (data.length < 10 && data.trim() === "[DONE]") {
      this.#lanes.closeAll()
      return { spans: [], ends: "all", unreadable: [] }
    }
    const nodes = nodesOf(data)
    if (nodes === undefined) return undefined
    const type = this.#typeOf(event, data, nodes[0])
    const found = new Findings(data, this.#lanes)
    read(data, nodes, type.rule, found)
    if (type.ends === "all" || event === "error") found.end("all", "")
    else if (type.ends === "scope") found.end("scope", nodes[0]?.group ?? "")
    return { spans: found.spans, ends: this.#close(found, type, nodes[0]), unreadable: found.places }
  }

  #typeOf(event: string | undefined, data: string, root: Node | undefined): EventType {
    const rules = routeRules[this.#route]
    const name = root?.type
    const type = name === undefined ? event : valueAt(data, name.start, name.end)
    return (type !== undefined && Object.hasOwn(rules.events, type) ? rules.events[type] : undefined) ?? rules.event
  }

  #close({ endsAll, groups }: Findings, type: EventType, root: Node | undefined): EventText["ends"] {
    if (endsAll) {
      this.#lanes.closeAll()
      return "all"
    }
    const ends: Array<string> = []
    if (groups !== undefined)
      for (const group of groups) for (const lane of this.#lanes.closeGroup(group)) ends.push(lane)
    if (typeof type.ends === "string" || root === undefined) return ends
    for (const name of type.ends) {
      const lane = join(root.scope, name)
      this.#lanes.close(root.group, lane)
      ends.push(lane)
    }
    return ends
  }
}

/** No provider nests the text of an event more deeply. The event in which held text follows repeats what is around it. */
const maxDepth = 64

/** What one event holds. Methods instead of closures: a stream makes one of these for each event. */
class Findings implements Visitor {
  readonly spans: Array<EventSpan> = []
  readonly places: Array<Place> = []
  endsAll = false
  groups: Set<string> | undefined
  readonly #data: string
  readonly #lanes: OpenLanes

  constructor(data: string, lanes: OpenLanes) {
    this.#data = data
    this.#lanes = lanes
  }

  enter(node: Node, rule: Rule): void {
    locate(this.#data, node, rule)
  }

  text(node: Node, { lane: name, place, role: usual, writing }: TextMeaning, signed: boolean): void {
    const role = usual === "delta" && node.depth > maxDepth ? "loose" : usual
    if (node.rule !== undefined) locate(this.#data, node, node.rule)
    const lane = join(node.scope, name ?? node.path)
    if (role !== "copy" && !this.#lanes.open(node.group, lane)) this.endsAll = true
    this.spans.push({ start: node.start, end: node.end, place, writing, signed, lane, role })
  }

  unreadable(place: Place): void {
    if (!this.places.includes(place)) this.places.push(place)
  }

  ends(ends: Ends, node: Node): void {
    this.end(ends, node.parent?.group ?? "")
  }

  end(ends: Ends, group: string): void {
    if (ends === "all" || group === "") {
      this.endsAll = true
      return
    }
    this.groups ??= new Set()
    this.groups.add(group)
  }
}
