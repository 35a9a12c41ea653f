import { assert, describe, it } from "@effect/vitest"
import { clientOf } from "../../../src/gateway/request/UserAgents.ts"

describe("The class of a user agent", () => {
  it.each([
    ["OpenAI/Python 1.99.1", "openai-python"],
    ["AsyncOpenAI/Python 2.8.0", "openai-python"],
    ["AsyncAzureOpenAI/Python 2.8.0", "openai-python"],
    ["OpenAI/JS 6.9.0", "openai-node"],
    ["OpenAI/Go 3.1.0", "openai-other"],
    ["OpenAI", "openai-other"],
    ["Anthropic/Python 0.70.0", "anthropic-python"],
    ["AsyncAnthropic/Python 0.70.0", "anthropic-python"],
    ["Anthropic/JS 0.68.0", "anthropic-ts"],
    ["claude-cli/2.0.31 (external, cli)", "claude-code"],
    ["codex_cli_rs/0.58.0 (Debian 13; x86_64) xterm", "codex"],
    ["codex_vscode/0.4.1", "codex"],
    ["Cursor/1.7.0", "cursor"],
    ["Mozilla/5.0 (X11; Linux) AppleWebKit/537.36 (KHTML, like Gecko) Cursor/1.7.0 Electron/34", "cursor"],
    ["Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0", "browser"],
    ["curl/8.14.1", "curl"],
    ["python-httpx/0.28.1", "python"],
    ["Python/3.13 aiohttp/3.13.0", "python"],
    ["node", "node"],
    ["Go-http-client/2.0", "go"],
    ["constructor/1.0", "other"],
    ["something else", "other"],
    ["", "other"],
    [undefined, "other"]
  ])("%s: %s", (userAgent, client) => {
    assert.strictEqual(clientOf(userAgent), client)
  })
})
