import type { Schema } from "effect"
import type { KeyTest, KeyTestProtocol } from "../api/holder/KeyTest.ts"

export interface TestRequest {
  readonly path: `/v1/${string}`
  readonly headers: Readonly<Record<string, string>>
  readonly body: { readonly [member: string]: Schema.Json }
}

type Asked = Pick<KeyTest, "model" | "protocol">
type ByProtocol = Readonly<Record<KeyTestProtocol, (model: string) => TestRequest>>

const messages = [{ role: "user", content: "hello" }]
const json = { "content-type": "application/json" }
const anthropic = { ...json, "anthropic-version": "2023-06-01" }

/** The first requests of the snippets. Only Anthropic's protocol requires a limit of output tokens. */
const examples: ByProtocol = {
  chat: (model) => ({ path: "/v1/chat/completions", headers: json, body: { model, messages } }),
  responses: (model) => ({ path: "/v1/responses", headers: json, body: { model, input: "hello" } }),
  messages: (model) => ({ path: "/v1/messages", headers: anthropic, body: { model, messages, max_tokens: 256 } })
}

export const exampleOf = ({ model, protocol }: Asked): TestRequest => examples[protocol](model)

/** OpenAI refuses fewer tokens in its Responses API. */
const leastOfResponses = 16

const smallestMembers: Readonly<Record<KeyTestProtocol, TestRequest["body"]>> = {
  chat: { max_tokens: 1 },
  // A stored response would stay at the model provider.
  responses: { max_output_tokens: leastOfResponses, store: false },
  messages: { max_tokens: 1 }
}

/** The same with the fewest output tokens that its protocol allows. */
export const smallestOf = (asked: Asked): TestRequest => withMembers(asked, smallestMembers[asked.protocol])

/**
 * The request in place of `smallestOf` after a refusal with this text. Newer models of OpenAI's take only the newer name
 * of the limit. Other servers know only the older one, and would ignore the limit if it came first.
 */
export const secondOf = (asked: Asked, refusal: string): TestRequest | undefined =>
  asked.protocol === "chat" && refusal.includes(newerLimit) ? withMembers(asked, { [newerLimit]: 1 }) : undefined

const newerLimit = "max_completion_tokens"

const withMembers = (asked: Asked, members: TestRequest["body"]): TestRequest => {
  const example = exampleOf(asked)
  return { ...example, body: { ...example.body, ...members } }
}
