import { Effect, Result } from "effect"
import * as PiiRedact from "../../src/guardrails/PiiRedact.ts"
import { StreamRedactor } from "../../src/guardrails/stream/StreamRedactor.ts"

/** What `pii-redact` adds to a chunk of a stream, in this process: values are redacted, and placeholders restored. */
export interface Guarded {
  readonly rounds: number
  readonly chunks: number
  /** Microseconds per chunk: of the fastest round, and of the one in the middle. */
  readonly leastMicros: number
  readonly medianMicros: number
  readonly maxHeld: number
}

const chunkCount = 1_000
const rounds = 60
/** Until V8 has compiled what runs often. */
const warmRounds = 20

const known = new Map([["[EMAIL_1]", "joe@example.org"]])
const words =
  "The report for [EMAIL_1] is ready. Send it to jane.doe@example.com or call +1 (555) 123-4567 before noon. "

/** Pieces of four characters, as a model's tokens are. */
const chunks: ReadonlyArray<Buffer> = Array.from({ length: chunkCount }, (_, index) => {
  const at = (index * 4) % words.length
  const content = (words + words).slice(at, at + 4)
  const chunk = {
    ...{ id: "chatcmpl-67cc9641234567890bb6", object: "chat.completion.chunk", created: 1_764_000_000, model: "bench" },
    choices: [{ index: 0, delta: { content }, logprobs: null, finish_reason: null }]
  }
  return Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`)
})

export const run: Effect.Effect<Guarded> = Effect.sync(() => {
  const micros: Array<number> = []
  let maxHeld = 0
  for (let round = 0; round < warmRounds + rounds; round++) {
    const redaction = Result.getOrThrow(PiiRedact.redactionOf("response", { config: {}, route: "chat", known }))
    const stream = new StreamRedactor(redaction, "chat")
    const since = performance.now()
    for (const chunk of chunks) Buffer.from(stream.push(chunk))
    stream.end()
    if (round >= warmRounds) micros.push(((performance.now() - since) * 1_000) / chunkCount)
    maxHeld = stream.maxHeld
  }
  micros.sort((one, other) => one - other)
  return {
    rounds,
    chunks: chunkCount,
    leastMicros: micros[0] ?? Number.NaN,
    medianMicros: micros[micros.length >> 1] ?? Number.NaN,
    maxHeld
  }
})
