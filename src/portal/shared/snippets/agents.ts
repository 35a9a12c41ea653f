import { keyVariable, keyWord, type Part, type Place, placeholder, shellWord, type Tool } from "./Snippet.ts"

export const claudeCodeParts = (place: Place): ReadonlyArray<Part> => [
  ...(place.key === undefined ? [keyVariable(place)] : []),
  {
    label: "For one run",
    text: `ANTHROPIC_BASE_URL=${shellWord(place.gatewayUrl)} ANTHROPIC_AUTH_TOKEN=${keyWord(place)} claude`
  },
  {
    label: "~/.claude/settings.json",
    text: JSON.stringify(
      { env: { ANTHROPIC_BASE_URL: place.gatewayUrl, ANTHROPIC_AUTH_TOKEN: place.key ?? placeholder } },
      null,
      2
    ),
    hint: "For every run. If the file exists, add the two variables to its “env”. /status shows them. There is no need for /login; if Claude Code is logged in and says that two credentials are set, run /logout."
  }
]

export const codexParts = (place: Place): ReadonlyArray<Part> => [
  ...(place.key === undefined ? [keyVariable(place)] : []),
  {
    label: "~/.codex/config.toml",
    // a text of TOML has the escapes of JSON
    text: `model_provider = "gateway"

[model_providers.gateway]
name = "gateway"
base_url = ${JSON.stringify(`${place.gatewayUrl}/v1`)}
env_key = "KEY"
wire_api = "responses"
stream_max_retries = 2`,
    hint: "If the file exists: the first line belongs above its first [table], the rest at its end. Below a table the first line would belong to that table, and Codex would call its vendor."
  },
  { label: "Start it", text: `KEY=${keyWord(place)} codex` }
]

/** The names of the two fields in Cursor's settings, and what goes into them. */
export const cursorParts = (place: Place): ReadonlyArray<Part> => [
  {
    label: "OpenAI API Key",
    text: place.key ?? placeholder,
    hint: "Cursor Settings, Models, API Keys: switch it on and paste your key."
  },
  {
    label: "Override OpenAI Base URL",
    text: `${place.gatewayUrl}/v1`,
    hint: "Below it: switch it on and paste the address."
  },
  { label: "Add model", text: place.model, hint: "Above it: add the model by its name, and choose it in the chat." }
]

export const claudeCode: Tool = { id: "claude-code", label: "Claude Code", parts: claudeCodeParts }
export const codex: Tool = { id: "codex", label: "Codex CLI", parts: codexParts }
export const cursor: Tool = {
  id: "cursor",
  label: "Cursor",
  note: "The servers of Cursor send the requests, so the address must be one that the internet can reach. Completion with Tab keeps to Cursor's own models.",
  parts: cursorParts
}
