import { Effect, Option, Schema } from "effect"
import type { RunningGateway } from "../RunningGateway.ts"

/** An answer of the proxy listener, read to its end. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

export interface Call {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  /** JSON, unless it is text or bytes already. */
  readonly body?: unknown
}

/** A request with `key` as its bearer; without one, with whatever `headers` say. */
export const call = (
  gateway: Pick<RunningGateway, "proxy">,
  path: string,
  key: string | undefined,
  { body, headers, method = body === undefined ? "GET" : "POST" }: Call = {}
): Effect.Effect<Answer> =>
  Effect.promise(async (signal) => {
    const response = await fetch(gateway.proxy + path, {
      method,
      signal,
      redirect: "manual",
      headers: {
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers
      },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) })
    })
    return { status: response.status, headers: response.headers, text: await response.text() }
  })

export const hello = [{ role: "user", content: "hello there" }]

/** A chat completion, plain unless `more` says otherwise. */
export const chat = (
  gateway: Pick<RunningGateway, "proxy">,
  key: string,
  more: Readonly<Record<string, unknown>> = {}
): Effect.Effect<Answer> =>
  call(gateway, "/v1/chat/completions", key, { body: { model: "m", messages: hello, ...more } })

/** A message of family B. */
export const message = (
  gateway: Pick<RunningGateway, "proxy">,
  key: string,
  more: Readonly<Record<string, unknown>> = {}
): Effect.Effect<Answer> =>
  call(gateway, "/v1/messages", key, { body: { model: "m", max_tokens: 16, messages: hello, ...more } })

const Refusal = Schema.fromJsonString(
  Schema.Struct({ error: Schema.Struct({ code: Schema.String, message: Schema.String }) })
)
const decodeRefusal = Schema.decodeUnknownOption(Refusal)

/** The gateway's own code in a refusal of either family; the text itself, when it is none. */
export const codeOf = ({ text }: Pick<Answer, "text">): string =>
  Option.match(decodeRefusal(text), { onNone: () => text, onSome: ({ error }) => error.code })

export const messageOf = ({ text }: Pick<Answer, "text">): string =>
  Option.match(decodeRefusal(text), { onNone: () => text, onSome: ({ error }) => error.message })
