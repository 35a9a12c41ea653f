import { execFile } from "node:child_process"
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { claudeCodeParts, codexParts } from "../../src/portal/shared/snippets/agents.ts"
import { curlParts, environmentParts } from "../../src/portal/shared/snippets/commands.ts"
import { type Part, placeholder } from "../../src/portal/shared/snippets/Snippet.ts"
import { anthropicTypeScriptParts, openaiTypeScriptParts } from "../../src/portal/shared/snippets/sdks.ts"
import * as GatewayOnPostgres from "../GatewayOnPostgres.ts"
import * as RunningGateway from "../RunningGateway.ts"

const execute = promisify(execFile)
/** Programs below it find the packages of this project. */
const caches = fileURLToPath(new URL("../../node_modules/.cache/", import.meta.url))

class Bench extends Context.Service<
  Bench,
  { readonly gatewayUrl: string; readonly key: string; readonly folder: string }
>()("test/e2e/Snippets") {
  static readonly layer = Layer.effect(
    Bench,
    Effect.gen(function* () {
      const gateway = yield* GatewayOnPostgres.start({})
      const { raw } = yield* Effect.promise(() => RunningGateway.createKey(gateway))
      const folder = yield* Effect.acquireRelease(
        Effect.promise(async () => {
          await mkdir(caches, { recursive: true })
          return mkdtemp(join(caches, "snippets-"))
        }),
        (path) => Effect.promise(() => rm(path, { recursive: true, force: true }))
      )
      return Bench.of({ gatewayUrl: gateway.proxy, key: raw, folder })
    })
  )
}

const textOf = (parts: ReadonlyArray<Part>, label: string) =>
  parts.find((part) => part.label === label)?.text ?? assert.fail(`no part ${label}`)

/** Runs a script of the shell that knows nothing of this process but where programs are. */
const shell = (script: string, folder: string) =>
  Effect.promise(async () => {
    const environment = { PATH: process.env["PATH"] ?? "", HOME: folder }
    return (await execute("sh", ["-ec", script], { cwd: folder, env: environment })).stdout
  })

layer(Bench.layer, { excludeTestServices: true })("The snippets of the portal, as people run them", (it) => {
  it.effect("curl, with the key in a variable and with the key itself", () =>
    Effect.gen(function* () {
      const { folder, gatewayUrl, key } = yield* Bench
      const [withVariable, withKey] = [
        curlParts({ gatewayUrl, model: "m" }),
        curlParts({ gatewayUrl, model: "m", key })
      ]
      for (const script of [`KEY=${key}\n${textOf(withVariable, "Command")}`, textOf(withKey, "Command")]) {
        assert.include(yield* shell(script, folder), '"chat.completion"')
      }
    })
  )

  it.effect("those of the terminal, one after the other in a new one, where no variable is set", () =>
    Effect.gen(function* () {
      const { folder, gatewayUrl, key } = yield* Bench
      // what the agents do with the variables and, for Codex, with the name of one in its file
      const ask = (token: string, base: string) =>
        `curl -s "${base}/v1/chat/completions" -H "authorization: Bearer ${token}" -H "content-type: application/json" -d '{"model":"m","messages":[{"role":"user","content":"hello"}]}'`
      const agents = `claude() { ${ask("$ANTHROPIC_AUTH_TOKEN", "$ANTHROPIC_BASE_URL")}; }\ncodex() { ${ask("$KEY", gatewayUrl)}; }`
      assert.include(textOf(codexParts({ gatewayUrl, model: "m" }), "~/.codex/config.toml"), 'env_key = "KEY"')
      for (const [parts, labels] of [
        [curlParts, ["Shell", "Command"]],
        [claudeCodeParts, ["Shell", "For one run"]],
        [codexParts, ["Shell", "Start it"]]
      ] as const) {
        const made = parts({ gatewayUrl, model: "m" })
        const pasted = labels.map((label) => textOf(made, label)).join("\n")
        assert.include(
          yield* shell(`set -u\n${agents}\n${pasted.replace(placeholder, key)}`, folder),
          '"chat.completion"'
        )
      }
    })
  )

  it.effect("both SDKs, with the variable that the shell sets", () =>
    Effect.gen(function* () {
      const { folder, gatewayUrl, key } = yield* Bench
      for (const parts of [openaiTypeScriptParts, anthropicTypeScriptParts]) {
        const made = parts({ gatewayUrl, model: "m", key })
        yield* Effect.promise(() => writeFile(join(folder, "program.mjs"), textOf(made, "TypeScript")))
        const output = yield* shell(`${textOf(made, "Shell")}\n"${process.execPath}" program.mjs`, folder)
        assert.include(output, "hello")
      }
    })
  )

  it.effect("the environment, which both SDKs read by themselves", () =>
    Effect.gen(function* () {
      const { folder, gatewayUrl, key } = yield* Bench
      const made = environmentParts({ gatewayUrl, model: "m", key })
      const program = `import OpenAI from "openai"
import Anthropic from "@anthropic-ai/sdk"
const messages = [{ role: "user", content: "hello" }]
await new OpenAI().chat.completions.create({ model: "m", messages })
await new Anthropic().messages.create({ model: "m", max_tokens: 9, messages })
console.log("both responded")`
      yield* Effect.promise(() => writeFile(join(folder, "program.mjs"), program))
      const run = `"${process.execPath}" program.mjs`
      const labels = ["Programs with OpenAI's protocol", "Programs with Anthropic's protocol"]
      const exported = labels.map((label) => textOf(made, label)).join("\n")
      assert.include(yield* shell(`${exported}\n${run}`, folder), "both responded")
      assert.include(yield* shell(`set -a\n${textOf(made, ".env")}\n${run}`, folder), "both responded")
    })
  )
})
