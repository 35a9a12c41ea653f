import { Effect } from "effect"
import { Database } from "../../src/services/Database.ts"
import { UpstreamError } from "../../src/services/Upstream.ts"
import * as Changes from "../../src/state/Changes.ts"
import type * as Egress from "../ScriptedEgress.ts"
import * as Proxy from "./Proxy.ts"
import type * as Upstream from "./ScriptedUpstream.ts"

/** The streams of one route: how their events are written, and how a client reads them. */
export interface Family {
  readonly target: string
  /** The lane of the model's text. */
  readonly lane: string
  /** The events of a stream with these pieces of text. The first ones and the last ones have none. */
  readonly events: (...pieces: ReadonlyArray<string>) => ReadonlyArray<string>
  /** The text that a client reads. */
  readonly read: (stream: string) => string
}

const data = (json: object, event?: string) =>
  `${event === undefined ? "" : `event: ${event}\n`}data: ${JSON.stringify(json)}\n\n`

const chunk = (delta: object, finish: string | null = null) =>
  data({ id: "c", choices: [{ index: 0, delta, finish_reason: finish }] })

const usage = { prompt_tokens: 20, completion_tokens: 7, total_tokens: 27 }

export const chat: Family = {
  target: Proxy.chat,
  lane: "choice 0 content",
  events: (...pieces) => [
    chunk({ role: "assistant", content: "" }),
    ...pieces.map((content) => chunk({ content })),
    chunk({}, "stop"),
    data({ id: "c", choices: [], usage }),
    "data: [DONE]\n\n"
  ],
  read: (stream) =>
    jsonOf(stream)
      .map(({ choices }) => choices?.[0]?.delta?.content ?? "")
      .join("")
}

const typed = (json: { readonly type: string }) => data(json, json.type)

export const messages: Family = {
  target: Proxy.messages,
  lane: "block 0",
  events: (...pieces) => [
    typed({
      type: "message_start",
      ...{ message: { id: "msg_1", role: "assistant", content: [], usage: { input_tokens: 20, output_tokens: 1 } } }
    }),
    typed({ type: "content_block_start", ...{ index: 0, content_block: { type: "text", text: "" } } }),
    ...pieces.map((text) =>
      typed({ type: "content_block_delta", ...{ index: 0, delta: { type: "text_delta", text } } })
    ),
    typed({ type: "content_block_stop", ...{ index: 0 } }),
    typed({ type: "message_delta", ...{ delta: { stop_reason: "end_turn" }, usage: { output_tokens: 7 } } }),
    typed({ type: "message_stop" })
  ],
  read: (stream) =>
    jsonOf(stream)
      .map(({ delta }) => delta?.text ?? "")
      .join("")
}

export const families = [
  ["chat completions", chat],
  ["messages", messages]
] as const

/** The events of OpenAI's responses repeat the whole text three times. */
export const responseEvents = (...pieces: ReadonlyArray<string>): ReadonlyArray<string> => {
  const text = pieces.join("")
  const place = { item_id: "msg_1", output_index: 0, content_index: 0 }
  const part = { type: "output_text", text, annotations: [] }
  const item = { id: "msg_1", type: "message", role: "assistant", content: [part] }
  const events = [
    ...pieces.map((delta) => ({ type: "response.output_text.delta", ...place, delta })),
    { type: "response.output_text.done", ...place, text },
    { type: "response.content_part.done", ...place, part },
    { type: "response.output_item.done", output_index: 0, item },
    {
      type: "response.completed",
      response: { id: "resp_1", output: [item], usage: { input_tokens: 3, output_tokens: 4 } }
    }
  ]
  return events.map((event, number) => typed({ ...event, ...{ sequence_number: number } }))
}

interface StreamEvent {
  readonly choices?: ReadonlyArray<{ readonly delta?: { readonly content?: string } }>
  readonly delta?: { readonly text?: string }
  readonly error?: { readonly code?: string }
}

/** The data of the events that are JSON. */
export const jsonOf = (stream: string): ReadonlyArray<StreamEvent> =>
  stream
    .split("\n")
    .filter((line) => line.startsWith("data: {"))
    .map((line) => JSON.parse(line.slice("data: ".length)))

/** The code of the error event at the end of a stream. */
export const errorCodeOf = (stream: string): string | undefined => jsonOf(stream).at(-1)?.error?.code

/** Sends each event when the gateway can take it. */
export const paced =
  (events: ReadonlyArray<string>, sent: Array<string> = []): Upstream.Script =>
  (sink) =>
    Effect.gen(function* () {
      if (sink.head(200, eventStream) === "stop") return yield* stopped
      for (const event of events) {
        sent.push(event)
        const flow = sink.chunk(Buffer.from(event))
        if (flow === "stop") return yield* stopped
        if (flow === "pause") yield* Effect.callback<void>((resume) => sink.onDrain(() => resume(Effect.void)))
      }
    })

export const eventStream = ["content-type", "text/event-stream"]

const stopped = new UpstreamError({ phase: "body", reason: "stopped" })

export interface JudgedText {
  readonly lane: string
  readonly place: string
  readonly context?: string
  readonly text: string
}

/** The texts of a call to a guardrail. */
export const textsOf = ({ text }: Egress.Asked): ReadonlyArray<JudgedText> => JSON.parse(text).response.texts

/** A guardrail that replies to the texts of each call. */
export const judging =
  (reply: (texts: ReadonlyArray<JudgedText>) => object): Egress.Script =>
  (asked) =>
    Effect.sync(() => ({ status: 200, body: JSON.stringify(reply(textsOf(asked))) }))

/** Blocks texts with the word `bad`. */
export const blockingBad = judging((texts) => ({
  action: texts.some(({ text }) => text.includes("bad")) ? "block" : "allow"
}))

/** An HTTP guardrail as control would have stored it. */
export const registered = (
  entry: {
    readonly name?: string
    readonly policy?: string
    readonly mode?: "buffer" | "window"
    readonly windowChars?: number
  } = {}
) =>
  Effect.gen(function* () {
    const { sql, transaction } = yield* Database
    const row = sql`INSERT INTO guardrail_definitions
      (name, description, provider_kind, modes, failure_policy, enabled, endpoint_url, timeout_ms, stream_mode, window_chars)
      VALUES (${entry.name ?? "guard"}, '', 'http', ${["post_call", "during_call"]}, ${entry.policy ?? "fail_closed"}, true,
        ${`https://${entry.name ?? "guard"}.test/check`}, 1500, ${entry.mode ?? "buffer"}, ${entry.windowChars ?? 512})`
    yield* transaction(Effect.andThen(Effect.orDie(row), Changes.publish({ _tag: "Configuration" })))
  })

export const guard = { mandatory_guardrails: ["guard"] }

/** Without it the gateway asks for the usage itself, and hides it from the client. */
const usageToo = { stream_options: { include_usage: true } }

/** A gateway whose key has the guardrail `guard`, and a request of the family for a stream. */
export const guarded = Effect.fnUntraced(function* (
  family: Family,
  options: Proxy.Options,
  entry: Parameters<typeof registered>[0] = {}
) {
  const gateway = yield* Proxy.make({ configured: registered(entry), ...options })
  const key = yield* Proxy.issueKey({}, { guardrails: guard })
  const body = { model: "m", max_tokens: 100, stream: true, ...usageToo, messages: [{ role: "user", content: "hi" }] }
  return { gateway, key, request: { target: family.target, headers: key.headers, body } }
})
