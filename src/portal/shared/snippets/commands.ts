import { keyVariable, keyWord, type Part, type Place, placeholder, shellWord, type Tool } from "./Snippet.ts"

const hello = [{ role: "user", content: "hello" }]

/** The first request of the README. */
export const curlParts = (place: Place): ReadonlyArray<Part> => [
  ...(place.key === undefined ? [keyVariable(place)] : []),
  {
    label: "Command",
    text: [
      `curl -s ${shellWord(`${place.gatewayUrl}/v1/chat/completions`)}`,
      place.key === undefined
        ? `-H "authorization: Bearer $KEY"`
        : `-H ${shellWord(`authorization: Bearer ${place.key}`)}`,
      `-H "content-type: application/json"`,
      `-d ${shellWord(JSON.stringify({ model: place.model, messages: hello }))}`
    ].join(" \\\n  ")
  }
]

/** The variables that both SDKs, and most programs made with them, read by themselves. */
export const environmentParts = (place: Place): ReadonlyArray<Part> => [
  ...(place.key === undefined ? [keyVariable(place)] : []),
  {
    label: "Programs with OpenAI's protocol",
    text: [
      `export OPENAI_BASE_URL=${shellWord(`${place.gatewayUrl}/v1`)}`,
      `export OPENAI_API_KEY=${keyWord(place)}`
    ].join("\n")
  },
  {
    label: "Programs with Anthropic's protocol",
    text: [
      `export ANTHROPIC_BASE_URL=${shellWord(place.gatewayUrl)}`,
      `export ANTHROPIC_API_KEY=${keyWord(place)}`
    ].join("\n")
  },
  {
    label: ".env",
    text: [
      `OPENAI_BASE_URL=${place.gatewayUrl}/v1`,
      `OPENAI_API_KEY=${place.key ?? placeholder}`,
      `ANTHROPIC_BASE_URL=${place.gatewayUrl}`,
      `ANTHROPIC_API_KEY=${place.key ?? placeholder}`
    ].join("\n"),
    hint: "The same as a file. Keep it out of the repository."
  }
]

export const curl: Tool = { id: "curl", label: "curl", parts: curlParts }
export const environment: Tool = { id: "environment", label: "Environment", parts: environmentParts }
