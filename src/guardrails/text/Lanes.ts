import type { Node } from "./JsonTape.ts"
import type { Rule } from "./Rule.ts"

/** More lanes at once than any provider uses. A stream that opens more ends its lanes early. */
export const maxLanes = 4_096

/** The lanes with pieces, by the first numbered thing in their name: `choice 0`, `output 1`, `block 2`. */
export class OpenLanes {
  readonly #groups = new Map<string, Set<string>>()
  #count = 0

  /** Returns false if the stream has too many lanes. */
  open(group: string, lane: string): boolean {
    const lanes = this.#groups.get(group)
    if (lanes?.has(lane)) return true
    if (lanes === undefined) this.#groups.set(group, new Set([lane]))
    else lanes.add(lane)
    return ++this.#count <= maxLanes
  }

  close(group: string, lane: string): void {
    if (this.#groups.get(group)?.delete(lane)) this.#count--
  }

  closeGroup(group: string): Iterable<string> {
    const lanes = this.#groups.get(group) ?? new Set()
    this.#count -= lanes.size
    this.#groups.delete(group)
    return lanes
  }

  closeAll(): void {
    this.#groups.clear()
    this.#count = 0
  }
}

/**
 * Long scopes and paths are cut, so that the lanes of a deep or hostile event stay short. No provider nests more than five
 * numbered things, which take fewer characters.
 */
const maxScope = 200
const maxPath = 200

/** Sets the scope of a node from the one around it: the numbered things it is in, and the names below them. */
export const locate = (data: string, node: Node, rule: Rule): void => {
  const { parent } = node
  node.scope = parent?.scope ?? ""
  node.group = parent?.group ?? ""
  node.path = parent?.path ?? ""
  let isNumbered = false
  if (node.kind !== "array" && node.scope.length < maxScope) {
    for (const { member, name } of rule.scopes) {
      const number = numberOf(data, node, member)
      if (number === undefined) continue
      const scope = `${name} ${number}`
      node.scope = join(node.scope, scope)
      if (node.group === "") node.group = scope
      isNumbered = true
    }
  }
  if (isNumbered || isAlone(node, rule)) node.path = ""
  else if (parent !== undefined && node.path.length < maxPath) {
    const step = node.position === -1 ? node.key.slice(0, 64) : String(node.position)
    node.path = node.path === "" ? step : `${node.path}.${step}`
  }
}

/** True for the one item of an event that has the item's number itself. */
const isAlone = (node: Node, rule: Rule): boolean =>
  node.kind === "object" && node.position === -1 && node.scope !== "" && rule.scopes.length > 0

const numberOf = (data: string, node: Node, member: string | undefined): string | undefined => {
  const index = member === undefined ? undefined : node.indexes?.findLast(({ key }) => key === member)
  // `0`, `0.0` and `0e0` are the same number to a client.
  if (index !== undefined) return String(Number(data.slice(index.start, index.end)))
  return node.position === -1 ? undefined : String(node.position)
}

export const join = (scope: string, name: string): string =>
  scope === "" || name === "" ? scope + name : `${scope} ${name}`
