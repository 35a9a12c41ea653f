import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { inject } from "vitest"
import manifest from "../../package.json" with { type: "json" }
import { root, shown } from "../Guides.ts"
import { end, environment, installInto, pack, run } from "./InstalledPackage.ts"
import * as NewProject from "./NewProject.ts"
import * as NodeVersions from "./NodeVersions.ts"

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

/** Prints the sources that this Node cannot parse, although it can remove their types. */
const parse = `
import { globSync, readFileSync } from "node:fs"
import { stripTypeScriptTypes } from "node:module"
import { SourceTextModule } from "node:vm"
for (const file of globSync("{src,layers,migrations}/**/*.ts")) {
  try {
    new SourceTextModule(stripTypeScriptTypes(readFileSync(file, "utf8")))
  } catch (error) {
    console.log(file, error.message)
  }
}`

const entries = Object.keys(manifest.exports).filter((entry) => entry !== "./package.json")
const nameOf = (entry: string) => `svc-runtime${entry.slice(1)}`

describe.skipIf(inject("registry") === null)("the package", () => {
  const folder = mkdtempSync(join(tmpdir(), "svc-test-package-"))
  const app = join(folder, "app")

  beforeAll(async () => {
    await NodeVersions.install()
    await installInto(app, await pack(folder))
    writeFileSync(join(app, "worker.ts"), shown("test/messaging/WorkerExample.ts"))
    writeFileSync(join(app, "program.ts"), program)
    writeFileSync(
      join(app, "all.ts"),
      `${entries.map((entry, index) => `import * as e${index} from "${nameOf(entry)}"`).join("\n")}
console.log(JSON.stringify([${entries.map((_, index) => `Object.keys(e${index}).length`).join(", ")}]))\n`
    )
  }, 600_000)

  afterAll(() => rmSync(folder, { recursive: true }))

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
    await run(app, ["tsc", ...options, ...types, "all.ts", "program.ts"])
  })

  it("has something in every entry", async () => {
    const counts: ReadonlyArray<number> = JSON.parse(await run(app, ["node", "all.ts"]))
    assert.lengthOf(counts, entries.length)
    for (const [index, count] of counts.entries()) assert.isAbove(count, 0, entries[index])
  })

  it.each([NodeVersions.oldest, NodeVersions.middle, process.versions.node])(
    "runs the guide's worker and the program on Node %s",
    async (version) => {
      const env = version === process.versions.node ? environment() : environment(NodeVersions.folderOf(version))
      assert.strictEqual(await run(app, ["node", "--version"], env), `v${version}\n`)
      const worked = await end(app, ["node", "program.ts"], env)
      assert.include(worked.out, "to a@b.co")
      assert.deepInclude(worked, { code: 0, errors: "" })
      assert.include(await run(app, ["npx", "--no-install", "svc-runtime", "--version"], env), manifest.version)
    }
  )

  it("has sources that the oldest Node can read, for a checkout without its own", async () => {
    const command = ["node", "--experimental-vm-modules", "--input-type=module", "--eval", parse]
    assert.strictEqual(await run(root, command, environment(NodeVersions.folderOf(NodeVersions.oldest))), "")
  })

  it("loads no driver with the task library, and nothing of the gateway", async () => {
    const said = await run(app, [
      "node",
      "--input-type=module",
      "--eval",
      `import { registerHooks } from "node:module"
       registerHooks({ load: (url, context, next) => (console.log(url), next(url, context)) })
       await import("svc-runtime/messaging"); await import("svc-runtime/status"); await import("svc-runtime/graph")`
    ])
    assert.notMatch(said, /amqplib|ioredis|undici|pglite|node_modules\/pg\/|dist\/src\/(gateway|control|guardrails)\//)
    assert.match(said, /dist\/src\/messaging\/index\.js/)
  })

  it("has its licence, its changes, its guides and no source of tests", () => {
    const installed = join(app, "node_modules", "svc-runtime")
    const guides = ["README.md", "layers/README.md", "layers/telemetry/README.md", "src/messaging/README.md"]
    for (const file of ["LICENSE", "CHANGELOG.md", ...guides])
      assert.isNotEmpty(readFileSync(join(installed, file), "utf8"))
    for (const guide of guides)
      for (const [, link = ""] of readFileSync(join(installed, guide), "utf8").matchAll(/\]\((?!https?:)([^)#]+)/g)) {
        const linked = join(guide, "..", link)
        if (!/^(deploy|test)\//.test(linked))
          assert.isTrue(existsSync(join(installed, linked)), `${guide} links ${linked}`)
      }
    assert.include(readFileSync(join(installed, "CHANGELOG.md"), "utf8"), `## ${manifest.version}`)
    assert.notInclude(readdirSync(installed), "test")
  })

  it("has the built portal, and none of its sources", async () => {
    const installed = join(app, "node_modules", "svc-runtime")
    const assets = readdirSync(join(installed, "dist/portal/assets"))
    for (const form of [/^App-.*\.js$/, /^App-.*\.js\.br$/, /^App-.*\.css\.gz$/])
      assert.lengthOf(
        assets.filter((name) => form.test(name)),
        1,
        String(form)
      )
    assert.isFalse(existsSync(join(installed, "dist/src/portal")))
    assert.deepStrictEqual(readdirSync(join(installed, "src/portal")).toSorted(), ["README.md", "pictures"])
    const served = await run(app, [
      "node",
      "--input-type=module",
      "--eval",
      `import { Effect } from "effect"
       import { PortalFiles } from "./node_modules/svc-runtime/dist/src/control/portal/PortalFiles.js"
       import { layer } from "./node_modules/svc-runtime/dist/layers/portal/PortalFolder.js"
       const portal = await Effect.runPromise(Effect.provide(Effect.gen(function* () { return yield* PortalFiles }), layer()))
       console.log(portal._tag, portal.value?.assets.size)`
    ])
    assert.match(served, /^Some \d\d/)
  })

  NewProject.suite(app)
})
