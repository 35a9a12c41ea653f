import { spawnSync } from "node:child_process"
import { assert, describe, it } from "@effect/vitest"
import { claudeCodeParts, codexParts, cursorParts } from "../../../src/portal/shared/snippets/agents.ts"
import { curlParts, environmentParts } from "../../../src/portal/shared/snippets/commands.ts"
import { type Place, shellWord } from "../../../src/portal/shared/snippets/Snippet.ts"
import {
  anthropicPythonParts,
  anthropicTypeScriptParts,
  openaiPythonParts,
  openaiTypeScriptParts
} from "../../../src/portal/shared/snippets/sdks.ts"
import { toolOf, tools } from "../../../src/portal/shared/snippets/tools.ts"

const gatewayUrl = "https://gateway.example"
const secret = `rk_live_${"ab".repeat(36)}`
const withoutKey: Place = { gatewayUrl, model: "gpt-5" }
const withKey: Place = { ...withoutKey, key: secret }

const textOf = (parts: ReturnType<typeof curlParts>): string => parts.map(({ text }) => text).join("\n")
const part = (parts: ReturnType<typeof curlParts>, label: string): string =>
  parts.find((one) => one.label === label)?.text ?? assert.fail(`no part ${label}`)

describe("snippets", () => {
  it.each(tools.map((tool) => [tool.id, tool] as const))(
    "of %s name the gateway, and no key but the given",
    (_, tool) => {
      assert.include(textOf(tool.parts(withKey)), gatewayUrl)
      assert.include(textOf(tool.parts(withKey)), secret)
      const text = textOf(tool.parts(withoutKey))
      assert.notInclude(text, "rk_live_ab")
      assert.match(text, /\bKEY\b|rk_live_…/)
    }
  )

  it.each(tools.map((tool) => [tool.id, tool] as const))("of %s have parts with names of their own", (_, tool) => {
    const labels = tool.parts(withKey).map(({ label }) => label)
    assert.strictEqual(new Set(labels).size, labels.length)
  })

  it("of curl are the first request of the README", () => {
    assert.strictEqual(
      part(curlParts(withoutKey), "Command"),
      `curl -s https://gateway.example/v1/chat/completions \\
  -H "authorization: Bearer $KEY" \\
  -H "content-type: application/json" \\
  -d '{"model":"gpt-5","messages":[{"role":"user","content":"hello"}]}'`
    )
  })

  it("of the environment are what both SDKs read", () => {
    assert.strictEqual(
      part(environmentParts(withKey), ".env"),
      `OPENAI_BASE_URL=https://gateway.example/v1
OPENAI_API_KEY=${secret}
ANTHROPIC_BASE_URL=https://gateway.example
ANTHROPIC_API_KEY=${secret}`
    )
  })

  it("of OpenAI's SDKs have an address that ends with /v1, those of Anthropic's do not", () => {
    for (const parts of [openaiTypeScriptParts, openaiPythonParts])
      assert.include(textOf(parts(withKey)), `"${gatewayUrl}/v1"`)
    for (const parts of [anthropicTypeScriptParts, anthropicPythonParts])
      assert.include(textOf(parts(withKey)), `"${gatewayUrl}"`)
  })

  it("of Claude Code are its variables, for one run and as settings", () => {
    assert.strictEqual(
      part(claudeCodeParts(withoutKey), "For one run"),
      'ANTHROPIC_BASE_URL=https://gateway.example ANTHROPIC_AUTH_TOKEN="$KEY" claude'
    )
    assert.deepStrictEqual(JSON.parse(part(claudeCodeParts(withKey), "~/.claude/settings.json")), {
      env: { ANTHROPIC_BASE_URL: gatewayUrl, ANTHROPIC_AUTH_TOKEN: secret }
    })
  })

  it("of Codex name the provider above the first table", () => {
    const settings = part(codexParts(withKey), "~/.codex/config.toml")
    assert.isBelow(settings.indexOf('model_provider = "gateway"'), settings.indexOf("["))
    assert.include(settings, `base_url = "${gatewayUrl}/v1"`)
    assert.notInclude(settings, secret)
  })

  it("of Cursor are the values of its two fields and the name of the model", () => {
    assert.deepStrictEqual(
      cursorParts(withKey).map(({ label, text }) => [label, text]),
      [
        ["OpenAI API Key", secret],
        ["Override OpenAI Base URL", `${gatewayUrl}/v1`],
        ["Add model", "gpt-5"]
      ]
    )
  })

  it("are of the first tool where an address names one that does not exist", () => {
    assert.strictEqual(toolOf("codex").id, "codex")
    assert.strictEqual(toolOf("gone").id, tools[0].id)
  })

  it("let no name of a model leave its quotes", () => {
    const hostile = `it's "$(touch x)" \\ \`id\`\n`
    const words = spawnSync("sh", ["-c", `printf %s ${shellWord(hostile)}`], { encoding: "utf8" })
    assert.strictEqual(words.stdout, hostile)
    const place: Place = { ...withKey, model: hostile }
    const data = /-d (.*)$/s.exec(part(curlParts(place), "Command"))?.[1] ?? ""
    const printed = spawnSync("sh", ["-c", `printf %s ${data}`], { encoding: "utf8" })
    assert.strictEqual(JSON.parse(printed.stdout).model, hostile)
    assert.include(textOf(openaiTypeScriptParts(place)), `model: ${JSON.stringify(hostile)},`)
  })
})
