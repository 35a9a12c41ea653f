import type { TextPlace, UnreadablePlace, Writing } from "./Place.ts"

/**
 * In a stream, a `delta` continues its lane; a `copy` repeats a lane's whole text or arrives whole. A `loose` piece may
 * continue its lane, but may as well be a word of its own, such as a state. It is therefore never held.
 */
export type Role = "delta" | "loose" | "copy"

/** What a string means. */
export type Meaning =
  | TextMeaning
  /** An id or a name or a fixed word of the protocol. What does not look like one is other text. */
  | {
      readonly _tag: "Token"
      readonly isId: boolean
      /** A model's name may look like an e-mail address, and changing it makes the request fail. */
      readonly mayHaveAt?: true
      /** True if only a number is an id. */
      readonly isNumber?: true
      readonly unreadable?: UnreadablePlace
      readonly ends?: Ends
    }
  /** Scored tokens, and credentials of servers that the vendor calls. */
  | { readonly _tag: "Never"; readonly unreadable?: UnreadablePlace }
  /** Base64. What is not base64 is text at `place`. */
  | { readonly _tag: "Binary"; readonly place: TextPlace; readonly unreadable?: UnreadablePlace }
  /** An address from which the provider fetches something. What is no address is text at `place`. */
  | { readonly _tag: "Address"; readonly place: TextPlace; readonly unreadable?: UnreadablePlace }

/** What a string in an event ends: the lanes of the numbered thing around it, or those of the whole stream. */
export type Ends = "scope" | "all"

export interface TextMeaning {
  readonly _tag: "Text"
  readonly place: TextPlace
  readonly writing: Writing
  /** `always`, or if the object also has a signature. */
  readonly signed: "never" | "always" | "with signature"
  readonly role: Role
  /** The lane's name after the numbers around it. Without one, the path of member names is the lane. */
  readonly lane?: string
  readonly ends?: Ends
}

/** The numbered thing that an object is, such as choice 0: its own member says the number, or its place in the array. */
export interface Scope {
  readonly name: string
  readonly member?: string
}

/**
 * What stands at one point of a document. The items of an array have the rule of the array. A member without a rule of
 * its own has the common rule of its name, such as `id`, or else `others`.
 */
export class Rule {
  readonly members = new Map<string, Rule>()
  /** Rules for objects by the value of their member `variantBy`. */
  readonly variants = new Map<string, Rule>()
  variantBy: "type" | "role" = "type"
  others: Rule = this
  /** True where users choose the member names, so that `id` or `type` may hold any text. */
  isFree = false
  /** True if a number in a member with an id's name is an id, although users choose the names. */
  hasNumericIds = false
  scopes: ReadonlyArray<Scope> = []

  readonly meaning: Meaning
  constructor(meaning: Meaning) {
    this.meaning = meaning
  }

  with(members: Readonly<Record<string, Rule>>): this {
    for (const [name, rule] of Object.entries(members)) this.members.set(name, rule)
    return this
  }

  /** Objects of these types have these members in addition to the common ones. */
  withTypes(types: Readonly<Record<string, Readonly<Record<string, Rule>>>>): this {
    for (const [name, members] of Object.entries(types)) this.variants.set(name, this.like().with(members))
    return this
  }

  withOthers(others: Rule): this {
    this.others = others
    return this
  }

  numbered(...scopes: ReadonlyArray<Scope>): this {
    this.scopes = scopes
    return this
  }

  free(): this {
    this.isFree = true
    return this
  }

  /** A copy that can also be told the types of the original. */
  likeWithTypes(meaning = this.meaning): Rule {
    const copy = this.like(meaning)
    for (const [type, variant] of this.variants) copy.variants.set(type, variant)
    return copy
  }

  /** A copy without the types. */
  like(meaning = this.meaning): Rule {
    const copy = new Rule(meaning)
    for (const [name, rule] of this.members) copy.members.set(name, rule)
    copy.others = this.others === this ? copy : this.others
    copy.isFree = this.isFree
    copy.hasNumericIds = this.hasNumericIds
    copy.scopes = this.scopes
    return copy
  }
}

type TextOptions = Partial<Omit<TextMeaning, "_tag" | "place">>

export const meaningOf = (place: TextPlace, options: TextOptions = {}): TextMeaning => ({
  _tag: "Text",
  place,
  writing: "plain",
  signed: "never",
  role: "copy",
  ...options
})

/** A text. In objects and arrays inside it, the unknown members are the same text. */
export const text = (place: TextPlace, options: TextOptions = {}): Rule => new Rule(meaningOf(place, options))

/** Text whose inner objects have member names that users choose. */
export const freeText = (place: TextPlace, options: TextOptions = {}): Rule => text(place, options).free()

/** Text that is JSON in a string, or the same value as an object. */
export const jsonText = (place: TextPlace, options: TextOptions = {}): Rule =>
  text(place, { writing: "json", ...options }).withOthers(freeText(place, { role: options.role ?? "copy" }))

/** An object or a list that is no text itself. */
export const unknown = text("other text")
export const unknownPiece = text("other text", { role: "delta" })
/** Whatever else stands in an event or beside the pieces of texts. It may be a piece of a text itself. */
export const unknownMember = text("other text", { role: "loose" })

/** A name or a fixed word, which has few digits, and an id, which may be a long number. */
export const token = new Rule({ _tag: "Token", isId: false }).withOthers(unknown)
export const id = new Rule({ _tag: "Token", isId: true }).withOthers(unknown)
export const modelName = new Rule({ _tag: "Token", isId: true, mayHaveAt: true }).withOthers(unknown)
/** The token of a server that the vendor calls: without it, the call fails. */
export const credential = new Rule({ _tag: "Never" }).withOthers(unknown)
export const ending = (ends: Ends): Rule => new Rule({ _tag: "Token", isId: false, ends }).withOthers(unknown)
export const reference = (unreadable: UnreadablePlace): Rule =>
  new Rule({ _tag: "Token", isId: true, unreadable }).withOthers(unknown)
export const binary = (unreadable?: UnreadablePlace, place: TextPlace = "other text"): Rule =>
  new Rule({ _tag: "Binary", place, ...(unreadable && { unreadable }) }).withOthers(unknown)
export const address = (unreadable?: UnreadablePlace, place: TextPlace = "other text"): Rule =>
  new Rule({ _tag: "Address", place, ...(unreadable && { unreadable }) }).withOthers(unknown)
export const scores = new Rule({ _tag: "Never", unreadable: "token probabilities" }).free()

/** An object of the protocol with these members. */
export const object = (members: Readonly<Record<string, Rule>>): Rule =>
  text("other text").withOthers(unknown).with(members)

/** An event of the protocol, or an object in it that holds pieces of texts. */
export const eventObject = (members: Readonly<Record<string, Rule>>): Rule => object(members).withOthers(unknownMember)

/** The bodies and events of a service, whose protocol the gateway does not know. */
export const serviceText = (role: Role): Rule => {
  const rule = freeText("other text", { role })
  rule.hasNumericIds = true
  return rule
}

/** The rule of a member by its name alone; `undefined` for names without a common meaning. */
export const commonRule = (name: string, { hasNumericIds, isFree }: Rule): Rule | undefined => {
  if (isFree) return hasNumericIds && (name === "id" || isIdName(name)) ? numericId : undefined
  return common.get(name) ?? (isIdName(name) ? id : name.startsWith("encrypted_") ? bytes : undefined)
}

const isIdName = (name: string): boolean => name.endsWith("_id") || name.endsWith("_ids")

const numericId = new Rule({ _tag: "Token", isId: true, isNumber: true }).withOthers(serviceText("copy"))

const bytes = binary()

const common: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  ["model", modelName],
  ...["signature", "b64_json", "file_data", "partial_image_b64"].map((name) => [name, bytes] as const),
  ["recommended_model", modelName],
  ...[
    ...["id", "fingerprint", "system_fingerprint", "obfuscation", "prompt_cache_key", "created_by"],
    ...["fallback_credit_token", "server_name", "mcp_server_name"]
  ].map((name) => [name, id] as const),
  ...[
    ...["type", "object", "role", "status", "finish_reason", "native_finish_reason", "stop_reason", "service_tier"],
    ...["format", "encoding_format", "media_type", "mime_type", "detail", "effort", "truncation", "tool_choice"],
    ...["reasoning_effort", "verbosity", "modalities", "include", "mode", "phase", "ttl", "speed", "background"],
    ...["quality", "size", "output_format", "error_code", "prompt_cache_retention", "inference_geo", "guardrails"],
    "betas"
  ].map((name) => [name, token] as const)
])
