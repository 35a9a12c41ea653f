import { Schema } from "effect"

/**
 * A part of a sentence. The texts of all parts, one after the other, are the sentence. `kind` says what a reader may show
 * in another way:
 *
 * - `text`: words of this service.
 * - `quoted`: text that a program wrote, such as the name of a consumer or the message of an exception.
 * - `queue`: the name of a queue of workers.
 * - `task`, `dead_letter`: an id.
 * - `at`, `since`, `until`: a time. `time` is the time alone, and `text` has the word before it.
 */
export const SentencePart = Schema.Union([
  Schema.Struct({
    kind: Schema.Literals(["text", "quoted", "queue", "task", "dead_letter"]),
    text: Schema.String
  }),
  Schema.Struct({ kind: Schema.Literals(["at", "since", "until"]), text: Schema.String, time: Schema.String })
])
export type SentencePart = typeof SentencePart.Type

export type Words = ReadonlyArray<SentencePart>

export const textOf = (words: Words): string => words.map(({ text }) => text).join("")

/** Makes the parts of a sentence. A value that is a string or a number is in the words of this service. */
export const say = (texts: TemplateStringsArray, ...values: ReadonlyArray<string | number | Words>): Words => {
  const parts: Array<SentencePart> = []
  const add = (part: SentencePart) => {
    const last = parts.at(-1)
    if (part.text === "") return
    if (part.kind === "text" && last?.kind === "text")
      parts[parts.length - 1] = { ...part, text: last.text + part.text }
    else parts.push(part)
  }
  for (const [place, text] of texts.entries()) {
    add({ kind: "text", text })
    const value = values[place] ?? ""
    if (typeof value === "object") for (const part of value) add(part)
    else add({ kind: "text", text: String(value) })
  }
  return parts
}

/** Joins what is not empty, with `between` between any two. */
export const join = (all: ReadonlyArray<Words>, between: string): Words =>
  all
    .filter((one) => one.length > 0)
    .reduce<Words>((so, one) => (so.length === 0 ? one : say`${so}${between}${one}`), [])

type OfId = Exclude<SentencePart, { readonly time: string }>["kind"]

/** A part of this kind, or else words of this service where it is not known. */
export const part = (kind: OfId, text: string | null, unknown = ""): Words =>
  text === null ? say`${unknown}` : [{ kind, text }]

/** ` at 2026-11-26T14:03:09Z`, with the space before it. Nothing where the time is not known. */
export const timed = (kind: "at" | "since" | "until", time: string | null): Words =>
  time === null ? [] : say` ${[{ kind, text: `${kind} ${time}`, time }]}`
