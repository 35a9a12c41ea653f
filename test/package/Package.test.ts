import { execFile } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, dirname, join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import manifest from "../../package.json" with { type: "json" }
import { read, root } from "../Guides.ts"

const bin = join(root, "node_modules", ".bin")
const environment = { ...process.env, PATH: [dirname(process.execPath), bin, process.env["PATH"]].join(delimiter) }

const run = (cwd: string, program: string, ...args: ReadonlyArray<string>) =>
  new Promise<string>((resolve, reject) => {
    execFile(program, args, { cwd, env: environment, maxBuffer: 1e8 }, (error, out, said) =>
      error === null ? resolve(out) : reject(new Error(`${program} ${args.join(" ")}: ${out}${said}`))
    )
  })

/** An example of a guide, as somebody writes it who has installed the package. */
const asInstalled = (example: string): string =>
  read(example)
    .replaceAll("../../src/messaging/index.ts", "svc-runtime/messaging")
    .replaceAll("../../src/index.ts", "svc-runtime")
    .replaceAll("./WorkerExample.ts", "./worker.ts")

const program = `
import { Effect, Layer } from "effect"
import * as BrokerMemory from "svc-runtime/layers/BrokerMemory"
import { client, send, worker } from "./worker.ts"

await Effect.runPromise(
  send("m1", { to: "a@b.co", text: "hi" }).pipe(
    Effect.andThen(Effect.sleep("500 millis")),
    Effect.provide(worker.pipe(Layer.provideMerge(client), Layer.provideMerge(BrokerMemory.layer()))),
    Effect.scoped
  )
)
`

const entries = Object.keys(manifest.exports).filter((entry) => entry !== "./package.json")
const nameOf = (entry: string) => `svc-runtime${entry.slice(1)}`

describe("the package", () => {
  const folder = mkdtempSync(join(tmpdir(), "svc-test-package-"))
  const app = join(folder, "app")

  /** Builds a copy, because other tests read the repository meanwhile. */
  beforeAll(async () => {
    const source = join(folder, "source")
    const kept = [
      "package.json",
      "tsconfig.json",
      "README.md",
      "LICENSE",
      "CHANGELOG.md",
      "src",
      "layers",
      "migrations"
    ]
    for (const name of kept) cpSync(join(root, name), join(source, name), { recursive: true })
    await run(source, "ln", "-s", join(root, "node_modules"), "node_modules")
    await run(source, "tsc", "-p", "src/tsconfig.package.json")
    await run(source, "npm", "pack", "--ignore-scripts", "--pack-destination", folder)
    const [tarball = ""] = readdirSync(folder).filter((name) => name.endsWith(".tgz"))
    mkdirSync(app)
    writeFileSync(join(app, "package.json"), JSON.stringify({ name: "app", private: true, type: "module" }))
    await run(
      app,
      "npm",
      "install",
      "--no-audit",
      "--no-fund",
      "--prefer-offline",
      "--ignore-scripts",
      join(folder, tarball)
    )
    writeFileSync(join(app, "worker.ts"), asInstalled("test/messaging/WorkerExample.ts"))
    writeFileSync(join(app, "tasks.ts"), asInstalled("test/messaging/MailTasks.ts"))
    writeFileSync(join(app, "program.ts"), program)
    writeFileSync(
      join(app, "all.ts"),
      `${entries.map((entry, index) => `import * as e${index} from "${nameOf(entry)}"`).join("\n")}
console.log(JSON.stringify([${entries.map((_, index) => `Object.keys(e${index}).length`).join(", ")}]))\n`
    )
  }, 600_000)

  afterAll(() => rmSync(folder, { recursive: true }))

  it("runs the guide's worker", async () => {
    assert.include(await run(app, "node", "program.ts"), "to a@b.co")
  })

  it("has types for every entry, also for those who check libraries", async () => {
    const options = [
      "--strict",
      "--module",
      "nodenext",
      "--target",
      "es2024",
      "--allowImportingTsExtensions",
      "--noEmit"
    ]
    const types = ["--types", "node", "--typeRoots", join(root, "node_modules", "@types")]
    await run(app, "tsc", ...options, ...types, "all.ts", "program.ts", "tasks.ts")
  })

  it("has something in every entry", async () => {
    const counts: ReadonlyArray<number> = JSON.parse(await run(app, "node", "all.ts"))
    assert.lengthOf(counts, entries.length)
    for (const [index, count] of counts.entries()) assert.isAbove(count, 0, entries[index])
  })

  it("starts the program under its name", async () => {
    assert.include(await run(app, "npx", "--no-install", "svc-runtime", "--version"), manifest.version)
  })

  it("loads no driver with the task library, and nothing of the gateway", async () => {
    const said = await run(
      app,
      "node",
      "--input-type=module",
      "--eval",
      `import { registerHooks } from "node:module"
       registerHooks({ load: (url, context, next) => (console.log(url), next(url, context)) })
       await import("svc-runtime/messaging"); await import("svc-runtime/status"); await import("svc-runtime/graph")`
    )
    assert.notMatch(said, /amqplib|ioredis|undici|pglite|node_modules\/pg\/|dist\/src\/(gateway|control|guardrails)\//)
    assert.match(said, /dist\/src\/messaging\/index\.js/)
  })

  it("has its licence, its changes and no source of tests", () => {
    const installed = join(app, "node_modules", "svc-runtime")
    for (const file of ["LICENSE", "CHANGELOG.md", "README.md"])
      assert.isNotEmpty(readFileSync(join(installed, file), "utf8"))
    assert.include(readFileSync(join(installed, "CHANGELOG.md"), "utf8"), `## ${manifest.version}`)
    assert.notInclude(readdirSync(installed), "test")
  })
})
