import { closeBrace, closeBracket, comma, openBrace, openBracket, quote, stringEnd } from "../policy/facts/JsonScan.ts"

/** A string value of a JSON text, by its place: from its opening quote to just behind the closing one. */
interface StringSpan {
  readonly start: number
  readonly end: number
  /** The name of the member that it is the value of; none for an item of an array. */
  readonly key: string | undefined
}

/** An object with strings in several of its members, in the order of their keys. */
interface ObjectNode {
  readonly members: ReadonlyArray<Member>
}

interface Member {
  readonly key: string
  readonly nodes: ReadonlyArray<Node>
}

type Node = StringSpan | ObjectNode

/**
 * `text` with each string value that `change` answers differently in its place. Every other byte stays as it was:
 * numbers keep their digits, keys their order. `text` must be JSON. Values are shown in the order of their objects'
 * keys, items as they stand; keys are not shown, but `change` is told which one a value stands under. Nothing here
 * recurses: a client's body may nest deeper than the call stack.
 */
export const map = (text: string, change: (value: string, key: string | undefined) => string): string => {
  const changes: Array<{ readonly start: number; readonly end: number; readonly json: string }> = []
  for (const { end, key, start } of orderedSpans(text)) {
    const value = valueAt(text, start, end)
    const changed = change(value, key)
    if (changed !== value) changes.push({ start, end, json: JSON.stringify(changed) })
  }
  if (changes.length === 0) return text
  changes.sort((a, b) => a.start - b.start)
  const parts: Array<string> = []
  let from = 0
  for (const { end, json, start } of changes) {
    parts.push(text.slice(from, start), json)
    from = end
  }
  parts.push(text.slice(from))
  return parts.join("")
}

/** The string values of `text`, as they stand. */
export const values = (text: string): ReadonlyArray<string> => {
  const found: Array<string> = []
  for (const node of parseNodes(text, false)) if ("start" in node) found.push(valueAt(text, node.start, node.end))
  return found
}

const valueAt = (text: string, start: number, end: number): string => {
  const plain = text.slice(start + 1, end - 1)
  return plain.includes("\\") ? JSON.parse(text.slice(start, end)) : plain
}

/** The string values of `text`, in the order in which `mapped` shows them. */
const orderedSpans = (text: string): ReadonlyArray<StringSpan> => {
  const found: Array<StringSpan> = []
  const pending: Array<Node> = parseNodes(text, true).reverse()
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    if ("start" in next) {
      found.push(next)
      continue
    }
    for (let member = next.members.length - 1; member >= 0; member--) {
      const { nodes } = next.members[member]!
      for (let node = nodes.length - 1; node >= 0; node--) pending.push(nodes[node]!)
    }
  }
  return found
}

/** A container that is open. There is one for each depth, used again by every container there. */
class Level {
  isObject = false
  /** Where the key of the member at hand stands; -1 where the next string is a key. */
  keyStart = -1
  keyEnd = -1
  /** Where the nodes of the container begin, and those of the member at hand. */
  start = 0
  memberStart = 0
  /** The key of the first member with strings. Its nodes are not moved before there is a second one. */
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
 * The strings of `text`. Arrays, and objects with strings in one member only, leave no trace in the result: the order of
 * their strings does not depend on a key. So the memory that this takes goes by the strings, and not by the brackets
 * around them.
 */
const parseNodes = (text: string, sortByKey: boolean): Array<Node> => {
  const nodes: Array<Node> = []
  const levels: Array<Level> = [new Level()]
  let depth = 0
  let level = levels[0]!

  const endMember = () => {
    if (sortByKey && level.isObject && nodes.length > level.memberStart) {
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
        } else {
          const key = level.isObject ? valueAt(text, level.keyStart, level.keyEnd) : undefined
          nodes.push({ start: at, end, key })
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
