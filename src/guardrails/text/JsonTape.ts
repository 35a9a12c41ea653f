import {
  backslash,
  closeBrace,
  closeBracket,
  colon,
  comma,
  openBrace,
  openBracket,
  quote
} from "../../policy/facts/JsonScan.ts"
import type { Rule } from "./Rule.ts"

export type NodeKind = "object" | "array" | "string" | "number" | "name"

/**
 * A value of a JSON text, or the name of a member, whose parent is the object. `start` and `end` are set for strings,
 * numbers and names; the literal of a string or name has its quotes.
 */
export interface Node {
  readonly kind: NodeKind
  readonly parent: Node | undefined
  /** The member's name, "" for an item of an array, for a whole document and for a name. */
  readonly key: string
  /** The item's index in its array, -1 for a member. */
  readonly position: number
  /** The number of containers around it. */
  readonly depth: number
  readonly start: number
  readonly end: number
  /** The string members `type` and `role` of an object: what it is may stand after its content. */
  type: Node | undefined
  role: Node | undefined
  /** True for an object with a `signature` or `encrypted_content`. */
  isSigned: boolean
  /** The numbered members of an object, whose names end with `index`. */
  indexes: Array<Node> | undefined
  /** What stands here, set by the reader of the nodes. */
  rule: Rule | undefined
  /** In events: the numbered things around the node, such as `output 1 part 0`, the first of them, and the names below. */
  scope: string
  group: string
  path: string
}

/**
 * Reads a JSON text into the list of its strings that are not empty, each after the containers around it. Member names
 * are in the list unless they are plain. The list leaves out numbers (but not the indexes), `true`, `false`, `null`, and
 * containers without strings and names. The result is `undefined` exactly
 * where `JSON.parse` throws. With `several` the text may hold documents one after another, as JSON lines do.
 */
export const nodesOf = (text: string, several = false): ReadonlyArray<Node> | undefined => {
  const reader = new Reader(text)
  return reader.read(several) ? reader.nodes : undefined
}

/** An open container. Its node is made with the first string in it. */
class Level {
  node: Node | undefined
  keyStart = -1
  keyEnd = -1
  position = 0
  readonly isObject: boolean
  constructor(isObject: boolean) {
    this.isObject = isObject
  }
}

class Reader {
  readonly nodes: Array<Node> = []
  private readonly levels: Array<Level> = []
  private readonly text: string
  constructor(text: string) {
    this.text = text
  }

  read(several: boolean): boolean {
    const { levels, text } = this
    let at = spaceEnd(text, 0)
    for (;;) {
      at = this.value(at)
      while (at !== -1) {
        at = spaceEnd(text, at)
        const level = levels.at(-1)
        if (level === undefined) {
          if (at === text.length) return true
          if (!several) return false
          break
        }
        const next = text.charCodeAt(at)
        if (next === comma) {
          level.position++
          at = level.isObject ? this.key(level, spaceEnd(text, at + 1)) : spaceEnd(text, at + 1)
          break
        }
        if (next !== (level.isObject ? closeBrace : closeBracket)) return false
        levels.pop()
        at++
      }
      if (at === -1) return false
    }
  }

  /** Reads a value that is no container, or the opening of containers. Returns -1 if there is none. */
  private value(from: number): number {
    const { levels, text } = this
    let at = from
    for (;;) {
      const first = text.charCodeAt(at)
      if (first === quote) {
        const end = stringEnd(text, at)
        if (end > at + 2) this.add("string", at, end)
        return end
      }
      if (first !== openBrace && first !== openBracket) return this.scalar(at)
      const isObject = first === openBrace
      at = spaceEnd(text, at + 1)
      if (text.charCodeAt(at) === (isObject ? closeBrace : closeBracket)) return at + 1
      const level = new Level(isObject)
      levels.push(level)
      if (isObject) at = this.key(level, at)
      if (at === -1) return -1
    }
  }

  private scalar(at: number): number {
    const end = scalarEnd(this.text, at)
    const level = this.levels.at(-1)
    if (end !== -1 && level?.isObject && this.text.startsWith('index"', level.keyEnd - 6)) this.add("number", at, end)
    return end
  }

  private key(level: Level, at: number): number {
    const { text } = this
    if (text.charCodeAt(at) !== quote) return -1
    level.keyStart = at
    level.keyEnd = stringEnd(text, at)
    if (level.keyEnd === -1) return -1
    if (!isPlainName(text, at, level.keyEnd)) this.add("name", at, level.keyEnd)
    const after = spaceEnd(text, level.keyEnd)
    return text.charCodeAt(after) === colon ? spaceEnd(text, after + 1) : -1
  }

  private add(kind: "string" | "number" | "name", start: number, end: number): void {
    const { levels } = this
    let depth = levels.length
    while (depth > 0 && levels[depth - 1]?.node === undefined) depth--
    for (; depth < levels.length; depth++) {
      const level = levels[depth]
      if (level === undefined) continue
      level.node = this.node(level.isObject ? "object" : "array", levels[depth - 1], -1, -1)
      this.nodes.push(level.node)
    }
    const level = levels.at(-1)
    const node = this.node(kind, level, start, end)
    this.nodes.push(node)
    const parent = level?.node
    if (parent === undefined || parent.kind !== "object" || kind === "name") return
    const { key } = node
    if (kind === "number") {
      parent.indexes ??= []
      parent.indexes.push(node)
    } else if (key === "type") parent.type = node
    else if (key === "role") parent.role = node
    else if ((key === "signature" || key === "encrypted_content") && end - start > 2) parent.isSigned = true
  }

  private node(kind: NodeKind, level: Level | undefined, start: number, end: number): Node {
    const isMember = level?.isObject === true
    return {
      kind,
      parent: level?.node,
      key: isMember && kind !== "name" ? valueAt(this.text, level.keyStart, level.keyEnd) : "",
      position: level === undefined || isMember ? -1 : level.position,
      depth: level?.node === undefined ? 0 : level.node.depth + 1,
      start,
      end,
      type: undefined,
      role: undefined,
      isSigned: false,
      indexes: undefined,
      rule: undefined,
      scope: "",
      group: "",
      path: ""
    }
  }
}

/** No detector finds anything in a name of letters, `_`, `-` and `$`, and nearly all names are such. */
export const isPlainName = (text: string, start: number, end: number): boolean => {
  for (let at = start + 1; at < end - 1; at++) {
    const code = text.charCodeAt(at)
    const letter = code | 0x20
    if ((letter < 0x61 || letter > 0x7a) && code !== 0x5f && code !== 0x2d && code !== 0x24) return false
  }
  return true
}

/** The value of the string literal between the two offsets. */
export const valueAt = (text: string, start: number, end: number): string => {
  const plain = text.slice(start + 1, end - 1)
  return plain.includes("\\") ? String(JSON.parse(text.slice(start, end))) : plain
}

const spaceEnd = (text: string, from: number): number => {
  let at = from
  for (;;) {
    const code = text.charCodeAt(at)
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return at
    at++
  }
}

const stringEnd = (text: string, start: number): number => {
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === quote) return at + 1
    if (code < 0x20) return -1
    if (code !== backslash) continue
    at++
    const escape = text.charAt(at)
    if (escape === "u") {
      for (const digits = at + 4; at < digits; at++) if (!isHexDigit(text.charCodeAt(at + 1))) return -1
    } else if (escape === "" || !'"\\/bfnrt'.includes(escape)) return -1
  }
  return -1
}

const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39
const isHexDigit = (code: number): boolean =>
  isDigit(code) || (code >= 0x41 && code <= 0x46) || (code >= 0x61 && code <= 0x66)

const literals = ["true", "false", "null"]

const scalarEnd = (text: string, start: number): number => {
  const literal = literals.find((one) => text.startsWith(one, start))
  if (literal !== undefined) return start + literal.length
  let at = text.charCodeAt(start) === 0x2d ? start + 1 : start
  const whole = at
  at = digitsEnd(text, at)
  if (at === whole || (text.charCodeAt(whole) === 0x30 && at > whole + 1)) return -1
  if (text.charCodeAt(at) === 0x2e) {
    const fraction = at + 1
    at = digitsEnd(text, fraction)
    if (at === fraction) return -1
  }
  const exponent = text.charCodeAt(at)
  if (exponent !== 0x65 && exponent !== 0x45) return at
  const sign = text.charCodeAt(at + 1)
  const digits = sign === 0x2b || sign === 0x2d ? at + 2 : at + 1
  at = digitsEnd(text, digits)
  return at === digits ? -1 : at
}

const digitsEnd = (text: string, from: number): number => {
  let at = from
  while (isDigit(text.charCodeAt(at))) at++
  return at
}
