import fc from "fast-check"
import type { UsageTap } from "../../src/gateway/usage/UsageTap.ts"

/** A chat stream twice: as the upstream sends it when asked for usage, and as it would have sent it otherwise. */
export interface ChatStream {
  readonly asked: Buffer
  readonly plain: Buffer
  readonly usage: { readonly prompt_tokens: number; readonly completion_tokens: number; readonly total_tokens: number }
}

interface Style {
  readonly lineEnd: "\n" | "\r\n" | "\r"
  /** What stands behind `data:`. */
  readonly gap: "" | " "
  /** What stands behind `,` and `:` in JSON. */
  readonly space: "" | " "
}

const style: fc.Arbitrary<Style> = fc.record({
  lineEnd: fc.constantFrom("\n", "\r\n", "\r"),
  gap: fc.constantFrom(" ", ""),
  space: fc.constantFrom("", " ")
})

const words = fc.string({
  unit: fc.constantFrom(..."ab ", "é", "☃", "🚀", '"', "\\", "{", "}", "\n", "data:", '"usage":null', '"usage":{'),
  maxLength: 5
})

const part = fc.oneof(
  { weight: 8, arbitrary: words.map((content) => ({ _tag: "Delta" as const, content })) },
  fc
    .constantFrom(": ping", ": data: no event", "event: metadata:", "")
    .map((line) => ({ _tag: "Other" as const, line })),
  words.map((content) => ({ _tag: "WithUsage" as const, content }))
)

export const chatStream: fc.Arbitrary<ChatStream> = fc
  .record({
    style,
    parts: fc.array(part, { maxLength: 8 }),
    /** Where among its members a chunk says `"usage":null`. */
    position: fc.nat(3),
    usage: fc.tuple(fc.nat(5000), fc.nat(5000)),
    done: fc.boolean(),
    /** Some upstreams end their last event with one line end, or none. */
    ending: fc.constantFrom("complete", "one line end", "none")
  })
  .map(({ done, ending, parts, position, style, usage: [input, output] }) => {
    const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output }
    const event = (members: ReadonlyArray<Member>) =>
      `data:${style.gap}{${members.map((member) => written(member, style)).join(`,${style.space}`)}}${style.lineEnd.repeat(2)}`
    const nothing: Member = ["usage", null]
    const both = parts.map((part): readonly [asked: string, plain: string] => {
      if (part._tag === "Other") return twice(`${part.line}${style.lineEnd.repeat(2)}`)
      const members = chunk(part.content)
      if (part._tag === "WithUsage") return twice(event([...members, ["usage", usage]]))
      return [event(members.toSpliced(position, 0, nothing)), event(members)]
    })
    both.push([
      event([
        ["id", "c"],
        ["choices", []],
        ["usage", usage]
      ]),
      ""
    ])
    if (done) both.push(twice(`data: [DONE]${style.lineEnd.repeat(2)}`))
    const text = (which: 0 | 1) => both.map((pair) => pair[which]).join("")
    // without [DONE] the last event is the one that is left out, and its ending with it
    const cutOff = !done || ending === "complete" ? 0 : style.lineEnd.length * (ending === "none" ? 2 : 1)
    const bytes = (which: 0 | 1) => Buffer.from(text(which).slice(0, text(which).length - cutOff))
    return { asked: bytes(0), plain: bytes(1), usage }
  })

type Member = readonly [name: string, value: unknown]

const chunk = (content: string): ReadonlyArray<Member> => [
  ["id", "c"],
  ["choices", [{ index: 0, delta: { content }, logprobs: { usage: 1 } }]],
  ["created", 1763640000]
]

const written = ([name, value]: Member, { space }: Style): string => `"${name}":${space}${JSON.stringify(value)}`

const twice = (text: string): readonly [string, string] => [text, text]

/** A way to split bytes into chunks: sizes, used over and over. */
export const splitting: fc.Arbitrary<ReadonlyArray<number>> = fc.oneof(
  fc.constant([1]),
  fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 6 }),
  fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 6 })
)

export const split = (bytes: Buffer, sizes: ReadonlyArray<number>): ReadonlyArray<Buffer> => {
  const chunks: Array<Buffer> = []
  for (let from = 0; from < bytes.length; ) {
    const to = from + (sizes[chunks.length % sizes.length] ?? 1)
    chunks.push(bytes.subarray(from, to))
    from = to
  }
  return chunks
}

/** What a client gets of `chunks`, and what was seen of them. */
export const through = (tap: UsageTap, chunks: ReadonlyArray<Buffer>) => {
  const out = [...chunks.map((chunk) => tap.push(chunk)), tap.flush()]
  return { bytes: Buffer.concat(out.filter((bytes) => bytes !== undefined)).toString("latin1"), seen: tap.observed() }
}
