import {
  closeBrace,
  closeBracket,
  comma,
  openBrace,
  openBracket,
  quote,
  stringEnd
} from "../../policy/facts/JsonScan.ts"
import { isPlainName, valueAt } from "../text/JsonTape.ts"

interface StringStart {
  readonly start: number
}

/** An object with strings in more than one member. `members` is sorted by key. */
interface ObjectNode {
  readonly members: ReadonlyArray<Member>
}

interface Member {
  readonly key: string
  readonly nodes: ReadonlyArray<Node>
}

type Node = StringStart | ObjectNode

/**
 * Returns where the string values of a JSON text begin, and the names that are not plain, each before the values of its
 * member. Members are sorted by name, array items are in order. The function does not recurse, because a client's body
 * may nest more deeply than the call stack allows.
 */
export const stringStarts = (text: string): ReadonlyArray<number> => {
  const starts: Array<number> = []
  const pending: Array<Node> = parseNodes(text).reverse()
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    if ("start" in next) {
      starts.push(next.start)
      continue
    }
    for (let member = next.members.length - 1; member >= 0; member--) {
      const { nodes } = next.members[member]!
      for (let node = nodes.length - 1; node >= 0; node--) pending.push(nodes[node]!)
    }
  }
  return starts
}

/** An open object or array. All containers of the same depth reuse one instance. */
class Level {
  isObject = false
  /** The position of the current member's key. -1 if the next string is a key. */
  keyStart = -1
  keyEnd = -1
  /** The indexes in `nodes` of the container's first node and of the current member's first node. */
  start = 0
  memberStart = 0
  /** The key of the first member with strings. The object becomes a node only if a second such member follows. */
  firstKey: string | undefined
  members: Array<Member> | undefined

  open(isObject: boolean, start: number): void {
    this.isObject = isObject
    this.keyStart = -1
    this.start = start
    this.memberStart = start
    this.firstKey = undefined
    this.members = undefined
  }
}

/**
 * Parses the strings of `text`. Arrays, and objects with strings in only one member, add no node, because keys do not
 * affect the order of their strings. Memory therefore grows with the number of strings and not of brackets.
 */
const parseNodes = (text: string): Array<Node> => {
  const nodes: Array<Node> = []
  const levels: Array<Level> = [new Level()]
  let depth = 0
  let level = levels[0]!

  const endMember = () => {
    if (level.isObject && nodes.length > level.memberStart) {
      const key = valueAt(text, level.keyStart, level.keyEnd)
      if (level.firstKey === undefined) level.firstKey = key
      else {
        const member = { key, nodes: nodes.splice(level.memberStart) }
        if (level.members === undefined) {
          level.members = [{ key: level.firstKey, nodes: nodes.splice(level.start) }, member]
        } else level.members.push(member)
      }
      level.memberStart = nodes.length
    }
    level.keyStart = -1
  }

  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case quote: {
        const end = stringEnd(text, at)
        if (level.isObject && level.keyStart === -1) {
          level.keyStart = at
          level.keyEnd = end
          if (!isPlainName(text, at, end)) nodes.push({ start: at })
        } else {
          nodes.push({ start: at })
        }
        at = end - 1
        break
      }
      case openBrace:
      case openBracket:
        depth++
        level = levels[depth] ??= new Level()
        level.open(text.charCodeAt(at) === openBrace, nodes.length)
        break
      case closeBrace:
      case closeBracket:
        endMember()
        if (level.members !== undefined) nodes.push({ members: level.members.sort(byKey) })
        depth--
        level = levels[depth]!
        break
      case comma:
        endMember()
    }
  }
  return nodes
}

const byKey = (a: Member, b: Member): number => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0)
