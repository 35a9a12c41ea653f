import { Effect } from "effect"
import type OpenAI from "openai"
import { traceHeaders } from "svc-runtime/messaging"

/** Asks the gateway within the trace of the task. */
export const ask = (client: OpenAI, content: string) =>
  Effect.flatMap(traceHeaders, (headers) =>
    Effect.tryPromise(() =>
      client.chat.completions.create({ model: "gpt-5", messages: [{ role: "user", content }] }, { headers })
    )
  )
