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

const bodyOf = (kind: Kind): Buffer =>
  Buffer.from(JSON.stringify({ model: models[kind], ...question, ...(streamed(kind) ? { stream: true } : {}) }))

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

const event = (data: string): string => `data: ${data}\n\n`
const chunk = (more: object): string => event(JSON.stringify({ ...stamp, object: "chat.completion.chunk", ...more }))

export const contentEvent: string = chunk({ choices: [{ index: 0, delta: { content: " word" }, finish_reason: null }] })
export const usageEvent: string = chunk({ choices: [], usage })
export const doneEvent: string = event("[DONE]")
