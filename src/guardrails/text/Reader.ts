import { backslash } from "../../policy/facts/JsonScan.ts"
import { type Node, valueAt } from "./JsonTape.ts"
import type { Place, TextPlace, Writing } from "./Place.ts"
import { commonRule, type Ends, type Meaning, meaningOf, type Rule, type TextMeaning } from "./Rule.ts"

/** A string of a JSON document that holds text for people or models. */
export interface TextSpan {
  /** The offsets of the whole literal with its quotes. */
  readonly start: number
  readonly end: number
  readonly place: Place
  /** `json`: the value of the string is itself JSON text, as tool arguments are. */
  readonly writing: Writing
  /** True if changing the text makes the next turn fail. */
  readonly signed: boolean
}

/** Receives what `read` finds, in the order of the text. */
export interface Visitor {
  /** Called for each object and array, before what is in it. `rule` is the one that all types of objects share. */
  readonly enter?: (node: Node, rule: Rule) => void
  readonly text: (node: Node, meaning: TextMeaning, signed: boolean) => void
  readonly unreadable: (place: Place) => void
  readonly ends?: (ends: Ends, node: Node) => void
}

/** Finds the texts among the nodes of a JSON text whose root has the rule `root`. */
export const read = (json: string, nodes: ReadonlyArray<Node>, root: Rule, visitor: Visitor): void => {
  for (const node of nodes) {
    if (node.kind === "number") continue
    const { parent } = node
    if (node.kind === "name") {
      readName(node, visitor)
      continue
    }
    const inherited = parent === undefined ? root : ruleIn(parent, parent.rule ?? root, node.key)
    node.rule = node.kind === "object" ? variant(json, node, inherited) : inherited
    if (node.kind === "string") readString(json, node, inherited, visitor)
    else visitor.enter?.(node, inherited)
  }
}

const ruleIn = (parent: Node, rule: Rule, key: string): Rule =>
  parent.kind === "array" ? rule : (rule.members.get(key) ?? commonRule(key, rule) ?? rule.others)

const variant = (json: string, node: Node, rule: Rule): Rule => {
  if (rule.variants.size === 0) return rule
  const name = rule.variantBy === "type" ? node.type : node.role
  return (name && rule.variants.get(valueAt(json, name.start, name.end))) ?? rule
}

/** The names in token probabilities are the tokens. */
const readName = (node: Node, visitor: Visitor): void => {
  const meaning = node.parent?.rule?.meaning
  if (meaning?._tag === "Never" && meaning.unreadable !== undefined) visitor.unreadable(meaning.unreadable)
  else add(nameMeaning, node, visitor)
}

const readString = (json: string, node: Node, rule: Rule, visitor: Visitor): void => {
  const { meaning } = rule
  if (meaning._tag === "Text") {
    if (meaning.ends !== undefined) visitor.ends?.(meaning.ends, node)
    const isFile = isDataUrl(json, node)
    if (isFile) visitor.unreadable("file")
    // A piece that looks like one keeps its place between the pieces before and after it.
    if (!isFile || meaning.role !== "copy" || !isLongBase64(json, node)) add(meaning, node, visitor)
    return
  }
  if (meaning._tag === "Token" && meaning.ends !== undefined) visitor.ends?.(meaning.ends, node)
  if (meaning._tag === "Token" && !isToken(json, node, meaning)) addAs("other text", node, visitor)
  else if (meaning._tag === "Binary" && !isBase64(json, node) && !isDataUrl(json, node))
    addAs(meaning.place, node, visitor)
  else if (meaning._tag === "Address" && !isAddress(json, node)) addAs(meaning.place, node, visitor)
  else if (meaning.unreadable !== undefined) visitor.unreadable(meaning.unreadable)
}

const add = (meaning: TextMeaning, node: Node, visitor: Visitor): void =>
  visitor.text(
    node,
    meaning,
    meaning.signed === "always" || (meaning.signed === "with signature" && node.parent?.isSigned === true)
  )

/** A name arrives whole, and it is no part of the text that the member holds. */
const nameMeaning = meaningOf("member name", { lane: "member name" })

const addAs = (place: TextPlace, node: Node, visitor: Visitor): void => add(meaningOf(place), node, visitor)

type TokenMeaning = Extract<Meaning, { readonly _tag: "Token" }>

/** Printable ASCII without `@`, spaces and what can encode them. A word with many digits may be a value. */
const isToken = (json: string, { end, start }: Node, { isId, isNumber, mayHaveAt }: TokenMeaning): boolean => {
  let digits = 0
  for (let index = start + 1; index < end - 1; index++) {
    const code = json.charCodeAt(index)
    if (code <= 0x20 || code > 0x7e || (code === at && mayHaveAt !== true)) return false
    if (code === backslash || code === percent || code === ampersand) return false
    if (code >= 0x30 && code <= 0x39) digits++
    else if (isNumber) return false
  }
  return digits < 9 || (isId && !socialSecurityNumber.test(json.slice(start + 1, end - 1)))
}

/** Some forms use such a number as an id. */
const socialSecurityNumber = /^\d{3}-\d{2}-\d{4}$/

const at = 0x40
const percent = 0x25
const ampersand = 0x26

/** Some writers escape the slashes of base64. */
const unescaped = (json: string, { end, start }: Node): string => {
  const written = json.slice(start + 1, end - 1)
  return written.includes("\\/") ? written.replaceAll("\\/", "/") : written
}

const isBase64 = (json: string, node: Node): boolean => /^[A-Za-z0-9+/=_-]*$/.test(unescaped(json, node))

const isDataUrl = (json: string, node: Node): boolean =>
  json.startsWith("data:", node.start + 1) &&
  /^data:(?:[\w.+-]{1,64}\/[\w.+-]{1,64})?(?:;charset=[\w-]{1,32})?;base64,[A-Za-z0-9+/=_-]*$/.test(
    unescaped(json, node)
  )

/** A data URL with fewer characters, or with other ones, may be a value that somebody wrote like a file. */
const isLongBase64 = (json: string, node: Node): boolean =>
  node.end - node.start > shortestFile && /,[A-Za-z0-9+/]+={0,2}$/.test(unescaped(json, node))

const shortestFile = 256

const isAddress = (json: string, node: Node): boolean =>
  isDataUrl(json, node) || /^[a-z][a-z0-9+.-]{1,15}:\/\/[^\s\\]*$/i.test(unescaped(json, node))
