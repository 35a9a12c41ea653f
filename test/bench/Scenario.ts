/** What every entrant is asked, and what the mock upstream answers to each. */

/** Chunks before a stream's `[DONE]`, and the milliseconds between two; 0 is as fast as the reader reads. */
export const streams = {
  paced: { chunks: 64, everyMs: 20 },
  brief: { chunks: 3, everyMs: 5 },
  burst: { chunks: 1_000, everyMs: 0 }
} as const
export type StreamKind = keyof typeof streams
/** The upstream's time to an answer where it is not immediate. */
export const slowMs = 20

/** The model is the switch: the one thing that every gateway passes on as it is. */
export const models = {
  instant: "bench-instant",
  slow: "bench-slow",
  paced: "bench-paced",
  brief: "bench-brief",
  burst: "bench-burst"
} as const
export type Kind = keyof typeof models
/** The upstream does not answer to it. */
export const silentModel = "bench-silent"

export const path = "/v1/chat/completions"

const question = {
  messages: [
    { role: "system", content: "You are a concise assistant." },
    { role: "user", content: "In one sentence: what does a gateway in front of a model proxy do for its operators?" }
  ],
  max_tokens: 128
}

export const streamed = (kind: Kind): kind is StreamKind => kind in streams

/** The address is one that a guardrail replaces by the placeholder in `report`. */
const streamedQuestion = {
  ...question,
  messages: [
    { role: "user", content: "Tell joe.miller@accounting.example.org in a few words how far the report for him is." }
  ],
  stream: true
}

const bodyOf = (kind: Kind): Buffer =>
  Buffer.from(JSON.stringify({ model: models[kind], ...(streamed(kind) ? streamedQuestion : question) }))

export const bodies: Readonly<Record<Kind, Buffer>> = {
  instant: bodyOf("instant"),
  slow: bodyOf("slow"),
  paced: bodyOf("paced"),
  brief: bodyOf("brief"),
  burst: bodyOf("burst")
}

/** Events that a client sees of a stream: the chunks and `[DONE]`. */
export const eventsOf = (kind: Kind): number => (streamed(kind) ? streams[kind].chunks + 1 : 0)

const stamp = { id: "chatcmpl-bench", created: 1_763_600_000, model: "bench" }
const usage = { prompt_tokens: 30, completion_tokens: 64, total_tokens: 94 }

/** 500 bytes, tokens included. */
export const answer: string = (() => {
  const of = (content: string) =>
    JSON.stringify({
      ...stamp,
      object: "chat.completion",
      choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
      usage
    })
  return of("It counts. ".repeat(50).slice(0, 500 - of("").length))
})()

const pieceLength = 4
const event = (data: string): string => `data: ${data}\n\n`
const chunk = (more: object): string => event(JSON.stringify({ ...stamp, object: "chat.completion.chunk", ...more }))

/** What a guardrail finds in it: a placeholder that it knows, an address of 54 characters, and a telephone number. */
export const report =
  "The report for [EMAIL_1] is ready. Send it to jane.doe@the-department-of-accounting.mail.example.com or call +1 (555) 123-4567. "
/** The report again and again, in pieces of four characters, as a model's tokens are. */
export const contentEvents: ReadonlyArray<string> = Array.from({ length: report.length }, (_, index) => {
  const at = (index * pieceLength) % report.length
  const content = (report + report).slice(at, at + pieceLength)
  return chunk({ choices: [{ index: 0, delta: { content }, finish_reason: null }] })
})
export const usageEvent: string = chunk({ choices: [], usage })
export const doneEvent: string = event("[DONE]")
