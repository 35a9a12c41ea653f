import { isAlphanumeric, normalCode } from "../detect/lexing/Characters.ts"
import { HtmlTag } from "./HtmlTag.ts"
import { LinkDestination } from "./LinkDestination.ts"

/**
 * Tells whether a text, read so far, is inside an address. A value must not be restored there, because opening the address
 * would send the value to a foreign server. The check errs on the side of an address.
 *
 * - A word in which an address begins belongs to it up to a space, a tab or a line feed. Other spaces are characters of an
 *   address. Between quotation marks that stand before the address, a space does not end it.
 * - The rest of a tag belongs to an address that stands in it, and so does the rest of a Markdown link's destination.
 * - If an address begins a string of tool arguments, then all of the string belongs to it. A tool may add the scheme, so
 *   that numbers of computers, schemes of all kinds and `user@computer:` begin an address there.
 */
export class LinkContext {
  readonly #tag = new HtmlTag()
  readonly #destination = new LinkDestination()
  /** True if the text is a string that a tool gets. */
  readonly #isArgument: boolean
  #isAddress = false
  /** True if the address ends with the text. */
  #isWhole = false
  /** The open quotation mark; 0 if there is none. */
  #quote = 0
  #previous = 0
  /** True if the text has a space after its first word. */
  #hasProse = false
  /** The last characters, in which an address may begin. Characters that addresses leave out are left out. */
  #recent = ""
  /** True if an address begins here unless a space follows, as in `to: ` and `from:`. */
  #mayBegin = false

  constructor(isArgument = false) {
    this.#isArgument = isArgument
  }

  get isInside(): boolean {
    return this.#isAddress || this.#mayBegin || this.isInMarkup
  }

  /** True inside a tag or a destination with an address. */
  get isInMarkup(): boolean {
    return this.#tag.hasAddress || this.#destination.hasAddress
  }

  /** True if the next text may continue an address of this one. */
  get isOpen(): boolean {
    return this.#isAddress || this.#mayBegin || this.#tag.isOpen || this.#destination.isOpen
  }

  /** Returns the context of a text that continues this one. */
  continued(): LinkContext {
    const next = new LinkContext(this.#isArgument)
    next.#tag.copyFrom(this.#tag)
    next.#destination.copyFrom(this.#destination)
    next.#isAddress = this.#isAddress
    next.#isWhole = this.#isWhole
    next.#quote = this.#quote
    next.#previous = this.#previous
    next.#hasProse = this.#hasProse
    next.#recent = this.#recent
    next.#mayBegin = this.#mayBegin
    return next
  }

  /** Another text begins. */
  begin(): void {
    this.#tag.begin()
    this.#destination.begin()
    this.endWord()
    this.#previous = 0
    this.#hasProse = false
  }

  /** A string of JSON begins here. Only a tag or a destination continues in it. */
  endWord(): void {
    this.#isAddress = false
    this.#isWhole = false
    this.#quote = 0
    this.#recent = ""
    this.#mayBegin = false
  }

  add(text: string): void {
    for (let at = 0; at < text.length; at++) this.addCode(text.charCodeAt(at))
  }

  addCode(code: number): void {
    this.#tag.add(code)
    this.#destination.add(code)
    if (code === space || code === tab || code === lineFeed) this.#addSpace(code)
    else this.#addCharacter(code)
    this.#previous = code
  }

  #addSpace(code: number): void {
    if (this.#previous !== 0) this.#hasProse = true
    if (this.#isWhole) return
    if (code === lineFeed && !this.#isArgument) this.#quote = 0
    if (this.#quote === 0) this.#isAddress = false
    this.#recent = ""
    this.#mayBegin = false
  }

  #addCharacter(code: number): void {
    if (code === this.#quote) this.#quote = 0
    else if (this.#quote === 0 && this.#isQuote(code)) this.#quote = code
    if (this.#isAddress) return
    if (this.#mayBegin) {
      this.#begin()
      return
    }
    const letter = letterOf(code)
    if (letter === undefined) return
    if (this.#recent.length >= 2 * maxStart) this.#recent = this.#recent.slice(-maxStart)
    this.#recent += String.fromCharCode(letter)
    if (letter === semicolon) this.#decodeEntity()
    else if (!isTrigger(letter)) return
    if (addressStart.test(this.#recent) || (this.#isFirstArgument && argumentStart.test(this.#recent))) this.#begin()
    else if (this.#isFirstArgument) this.#mayBegin = possibleStart.test(this.#recent)
  }

  /** True in the first word of a string of tool arguments. */
  get #isFirstArgument(): boolean {
    return this.#isArgument && !this.#hasProse
  }

  #begin(): void {
    this.#mayBegin = false
    this.#isAddress = true
    this.#isWhole = this.#isFirstArgument
  }

  /** An apostrophe inside a word is no quotation mark. */
  #isQuote(code: number): boolean {
    return code === doubleQuote || (code === singleQuote && !isAlphanumeric(this.#previous))
  }

  /** Markdown and HTML decode entities in addresses. */
  #decodeEntity(): void {
    const start = this.#recent.lastIndexOf("&")
    if (start === -1) return
    const name = this.#recent.slice(start + 1, -1).toLowerCase()
    const [, hex, decimal] = numericEntity.exec(name) ?? []
    const code = hex === undefined ? Number(decimal ?? entities.get(name)) : Number.parseInt(hex, 16)
    if (!(code < 0x80)) return
    const isDropped = code === tab || code === lineFeed || code === carriageReturn
    this.#recent = this.#recent.slice(0, start) + (isDropped ? "" : String.fromCharCode(code))
  }
}

const space = 0x20
const tab = 0x09
const lineFeed = 0x0a
const carriageReturn = 0x0d
const doubleQuote = 0x22
const singleQuote = 0x27
const semicolon = 0x3b

const numericEntity = /^#(?:x([0-9a-f]{1,6})|(\d{1,7}))$/
const entities: ReadonlyMap<string, number> = new Map([
  ["colon", 0x3a],
  ["sol", 0x2f],
  ["bsol", 0x5c],
  ["period", 0x2e],
  ["quest", 0x3f],
  ["num", 0x23],
  ["tab", tab],
  ["newline", lineFeed]
])

const isTrigger = (code: number): boolean =>
  code === 0x3a || code === 0x2f || code === 0x5c || code === 0x2e || code === 0x3f || code === 0x23

/** Programs that open addresses leave out some characters, and take others for their ASCII form. */
const letterOf = (code: number): number | undefined =>
  code < 0x80 ? code : code === 0x3002 || code === 0xff61 ? dot : normalCode(code)

const dot = 0x2e
/** What may follow the name of a computer in an address. */
const afterName = String.raw`\.?;?(?::\d{0,5})?[/\\?#]$`

/** A scheme, two slashes, `www.`, or the name or the four numbers of a computer with what may follow it in an address. */
const addressStart = new RegExp(
  [
    String.raw`(?:(?:https?|ftp|wss?|file|mailto|xmpp):|[/\\]{2}|\bwww\.)$`,
    String.raw`[\p{L}\p{N}]\.(?:\p{L}{2,24}|xn--[a-z0-9-]{1,59})${afterName}`,
    String.raw`(?:\d{1,3}\.){3}\d{1,3}${afterName}`
  ].join("|"),
  "iu"
)

const wordStart = String.raw`(?<![\p{L}\p{N}.])`

/** The number of a computer as addresses may write it. */
const argumentStart = new RegExp(
  String.raw`(?:\[[\da-f:.]{2,45}\]|\d\.(?:0x[\da-f]{1,8}|\d{1,10})|${wordStart}(?:0x[\da-f]{1,8}|\d{8,11}))${afterName}`,
  "iu"
)

/** Other schemes, and the name or the number of a computer before a port or a path. `to:` and `from:` begin nothing. */
const possibleStart = new RegExp(
  [
    `${wordStart}(?:blob|data|dict|ftps|git|gopher|gs|imaps?|intent|irc|javascript|ldaps?|nfs|news|nntp|rtsp|s3|scp|sftp|sips?|smb|sms|ssh|tel|telnet|tftp|vbscript|view-source|webcal|whatsapp):$`,
    String.raw`(?:[\p{L}\p{N}]\.(?:\p{L}{2,24}|xn--[a-z0-9-]{1,59})|\d\.\d{1,3}|\])\.?:$`
  ].join("|"),
  "iu"
)
const maxStart = 64
