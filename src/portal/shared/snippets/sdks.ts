import { keyVariable, type Part, type Place, type Tool } from "./Snippet.ts"

const install = (text: string): Part => ({ label: "Install", text })

/** A text of TypeScript or Python: both read the escapes of JSON. */
const literal = (text: string): string => JSON.stringify(text)

export const openaiTypeScriptParts = (place: Place): ReadonlyArray<Part> => [
  install("npm install openai"),
  keyVariable(place),
  {
    label: "TypeScript",
    text: `import OpenAI from "openai"

const openai = new OpenAI({ apiKey: process.env.KEY, baseURL: ${literal(`${place.gatewayUrl}/v1`)} })

const answer = await openai.chat.completions.create({
  model: ${literal(place.model)},
  messages: [{ role: "user", content: "hello" }]
})
console.log(answer.choices[0]?.message.content)`
  }
]

export const openaiPythonParts = (place: Place): ReadonlyArray<Part> => [
  install("pip install openai"),
  keyVariable(place),
  {
    label: "Python",
    text: `import os
from openai import OpenAI

client = OpenAI(api_key=os.environ["KEY"], base_url=${literal(`${place.gatewayUrl}/v1`)})

answer = client.chat.completions.create(
    model=${literal(place.model)},
    messages=[{"role": "user", "content": "hello"}],
)
print(answer.choices[0].message.content)`
  }
]

export const anthropicTypeScriptParts = (place: Place): ReadonlyArray<Part> => [
  install("npm install @anthropic-ai/sdk"),
  keyVariable(place),
  {
    label: "TypeScript",
    text: `import Anthropic from "@anthropic-ai/sdk"

const anthropic = new Anthropic({ apiKey: process.env.KEY, baseURL: ${literal(place.gatewayUrl)} })

const answer = await anthropic.messages.create({
  model: ${literal(place.model)},
  max_tokens: 256,
  messages: [{ role: "user", content: "hello" }]
})
console.log(answer.content)`
  }
]

export const anthropicPythonParts = (place: Place): ReadonlyArray<Part> => [
  install("pip install anthropic"),
  keyVariable(place),
  {
    label: "Python",
    text: `import os
from anthropic import Anthropic

client = Anthropic(api_key=os.environ["KEY"], base_url=${literal(place.gatewayUrl)})

answer = client.messages.create(
    model=${literal(place.model)},
    max_tokens=256,
    messages=[{"role": "user", "content": "hello"}],
)
print(answer.content)`
  }
]

export const openaiTypeScript: Tool = {
  id: "openai-typescript",
  label: "OpenAI SDK · TypeScript",
  parts: openaiTypeScriptParts
}
export const openaiPython: Tool = { id: "openai-python", label: "OpenAI SDK · Python", parts: openaiPythonParts }
export const anthropicTypeScript: Tool = {
  id: "anthropic-typescript",
  label: "Anthropic SDK · TypeScript",
  parts: anthropicTypeScriptParts
}
export const anthropicPython: Tool = {
  id: "anthropic-python",
  label: "Anthropic SDK · Python",
  parts: anthropicPythonParts
}
