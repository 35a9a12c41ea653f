import { Clock, Effect, Option, Schema } from "effect"
import type { Execution } from "../policy/Guardrail.ts"
import type { StoppedBy } from "./GuardrailOutcome.ts"
import type { Guardrails } from "./Guardrails.ts"
import type { RequestContext } from "./HttpGuardrail.ts"
import type { PlaceholderValues } from "./redact/Redaction.ts"
import type { Selection } from "./Selection.ts"
import * as StreamCalls from "./StreamCalls.ts"
import { StreamChain } from "./StreamChain.ts"

interface StreamTestRun {
  /** The text that is sent after each chunk, and what follows at the end. It ends with the chunk that was stopped. */
  readonly sent: ReadonlyArray<string>
  readonly executions: ReadonlyArray<Execution>
  readonly stopped?: StoppedBy
}

/** Runs guardrails on a text that arrives in chunks, as the pieces of one chat completion. */
export const run = Effect.fnUntraced(function* (
  guardrails: Guardrails["Service"],
  steps: Selection,
  chunks: ReadonlyArray<string>,
  {
    known = new Map(),
    ...request
  }: {
    readonly requestId: string
    readonly context: RequestContext
    /** The placeholders of the request before, with the values that they replaced. */
    readonly known?: PlaceholderValues
  }
) {
  const clock = yield* Clock.Clock
  const fork = Effect.runForkWith(yield* Effect.context<never>())
  return yield* Effect.callback<StreamTestRun>((resume) => {
    const sent: Array<string> = []
    let received = ""
    let next = 0
    let isProceeding = false
    let isEnded = false
    const takeSent = () => {
      sent.push(textOf(received))
      received = ""
    }
    /** Pushes chunks until a guardrail is busy. Then `ready` goes on. */
    const proceed = () => {
      isProceeding = true
      while (next < chunks.length && !chain.isBusy && !isEnded) {
        chain.push(eventOf(chunks[next++] ?? ""))
        if (!chain.isBusy && !isEnded) takeSent()
      }
      isProceeding = false
      if (chain.isBusy || isEnded) return
      isEnded = true
      chain.end()
    }
    const finish = (end: Pick<StreamTestRun, "stopped">) => {
      isEnded = true
      takeSent()
      resume(Effect.succeed({ sent, executions: chain.report().executions, ...end }))
    }
    const call = StreamCalls.make(guardrails, {
      ...request,
      fork,
      onDefect: (defect) => resume(Effect.die(defect))
    })
    const chain = new StreamChain(
      steps,
      { route: "chat", known, now: () => clock.currentTimeMillisUnsafe(), call },
      {
        push: (bytes) => {
          received += bytes.toString()
        },
        end: () => finish({}),
        stop: (stopped) => finish({ stopped }),
        ready: () => {
          if (isProceeding || isEnded) return
          takeSent()
          proceed()
        }
      }
    )
    proceed()
    return Effect.sync(() => chain.cancel())
  })
})

const eventOf = (content: string): Buffer =>
  Buffer.from(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`)

const Chunk = Schema.fromJsonString(
  Schema.Struct({ choices: Schema.Array(Schema.Struct({ delta: Schema.Struct({ content: Schema.String }) })) })
)
const decodeChunk = Schema.decodeUnknownOption(Chunk)

/** Returns the text of the events. Comments have none. */
const textOf = (events: string): string =>
  events
    .split("\n\n")
    .flatMap((event) => Option.toArray(decodeChunk(event.replace(/^data: /, ""))))
    .flatMap(({ choices }) => choices.map(({ delta }) => delta.content))
    .join("")
