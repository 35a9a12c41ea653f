import type { BodyOf, ResponseOf } from "../../../api/Endpoints.ts"

type Test = NonNullable<BodyOf<"POST", "/admin-ui/v1/guardrails/test">>
type Tested = ResponseOf<"POST", "/admin-ui/v1/guardrails/test">
export type Direction = "sent" | "answered" | "streamed"

/** So long is a piece of a stream: guardrails must find what is spread over several. */
const pieceLength = 12

/** The text as the guardrails would meet it: in a request, in a response, or in the pieces of a stream. */
export const testOf = (direction: Direction, text: string): Test => {
  if (direction === "streamed") return { mode: "during_call", chunks: piecesOf(text) }
  return direction === "sent"
    ? { mode: "pre_call", input: { model: "any", messages: [{ role: "user", content: text }] } }
    : { mode: "post_call", input: { choices: [{ index: 0, message: { role: "assistant", content: text } }] } }
}

const piecesOf = (text: string): ReadonlyArray<string> =>
  Array.from({ length: Math.ceil(text.length / pieceLength) }, (_, place) =>
    text.slice(place * pieceLength, (place + 1) * pieceLength)
  )

/** The text after the guardrails. */
export const textAfter = ({ input, sent }: Tested): string => (sent === undefined ? contentIn(input) : sent.join(""))

/** The longest text in a body that was made by `testOf`: the rest of it are names. */
const contentIn = (value: unknown): string => {
  if (typeof value !== "object" || value === null) return ""
  return Object.entries(value)
    .map(([name, part]) => (name === "content" && typeof part === "string" ? part : contentIn(part)))
    .join("")
}

/** What a guardrail does to a text, as the end of a sentence that begins with its name. */
export const actionWords: Readonly<Record<string, string>> = {
  allow: "lets it pass",
  modify: "changes it",
  block: "blocks it",
  warn: "warns of it"
}

/** What was found, of what guardrails say beside their decision: `{"email_count": 1}` is "1 email". */
export const foundText = (metadata: Readonly<Record<string, unknown>>): string =>
  Object.entries(metadata)
    .flatMap(([name, count]) =>
      name.endsWith("_count") && typeof count === "number" && count > 0
        ? [`${count} ${name.slice(0, -"_count".length).replaceAll("_", " ")}`]
        : []
    )
    .join(", ")
