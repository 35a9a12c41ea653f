import { installation } from "../../../api/installation.ts"

const gateway = installation.gateway_url ?? "http://127.0.0.1:8080"

/** Without a secret the command takes that of a variable. */
export const commandOf = (secret: string | undefined): string =>
  [
    `curl -s ${gateway}/v1/chat/completions`,
    `-H "authorization: Bearer ${secret ?? "$KEY"}"`,
    "-H 'content-type: application/json'",
    `-d '{"model":"gpt-5","messages":[{"role":"user","content":"Hello"}]}'`
  ].join(" \\\n  ")

/** What a coding agent needs to know of this gateway. */
export const agentSettings = [
  `export ANTHROPIC_BASE_URL=${gateway}`,
  'export ANTHROPIC_AUTH_TOKEN="$KEY"    # Claude Code',
  `export OPENAI_BASE_URL=${gateway}/v1`,
  'export OPENAI_API_KEY="$KEY"          # Codex, the OpenAI SDKs'
].join("\n")
