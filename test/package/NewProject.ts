import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import manifest from "../../package.json" with { type: "json" }
import * as EndedProcess from "../EndedProcess.ts"
import { eventually } from "../Eventually.ts"
import { blocks, programs, shown } from "../Guides.ts"
import * as LocalPort from "../LocalPort.ts"
import * as RawConnection from "../RawConnection.ts"
import { end, environment, npmInstall, run } from "./InstalledPackage.ts"
import * as NodeVersions from "./NodeVersions.ts"

/** The command `init` of the package that is installed in `app`, and what becomes of the project that it writes. */
export const suite = (app: string) =>
  describe("a new project", () => {
    const parent = dirname(app)
    const project = join(parent, "my-app")
    const init = (folder: string) => ["node_modules/.bin/svc-runtime", "init", folder]

    beforeAll(async () => {
      const said = await run(app, ["npx", "--no-install", "svc-runtime", "init", "../my-app"])
      assert.match(said, /^ {2}cd \.\.\/my-app\n {2}npm install\n {2}npm test\n {2}npm start$/m)
      await run(project, npmInstall)
    }, 600_000)

    const commands = () => {
      const shells = blocks(readFileSync(join(project, "README.md"), "utf8"), "sh")
      return shells.map((shell) =>
        shell
          .trimEnd()
          .replaceAll(/ +#.*$/gm, "")
          .split("\n")
      )
    }

    it("is named as its folder, and has the package, its peers and nothing without a version", () => {
      const { dependencies, engines, name, ...rest } = JSON.parse(readFileSync(join(project, "package.json"), "utf8"))
      assert.deepStrictEqual([name, engines], ["my-app", manifest.engines])
      assert.deepStrictEqual(dependencies, {
        ...manifest.peerDependencies,
        "svc-runtime": `file:../svc-runtime-${manifest.version}.tgz`
      })
      assert.notInclude(JSON.stringify(rest), "*")
      assert.include(readdirSync(project), ".gitignore")
    })

    it("passes its tests, on Node in the middle of those that are allowed", async () => {
      assert.deepStrictEqual(commands()[0], ["npm install", "npm test", "npm start"])
      const said = await run(project, ["npm", "test"], environment(NodeVersions.folderOf(NodeVersions.middle)))
      assert.match(said, /2 passed/)
    })

    it("passes its checks, together with the programs of the guides", async () => {
      const folder = join(project, "guides")
      mkdirSync(folder)
      for (const { example, file } of programs) {
        const program = shown(example)
        // The project has no client of a vendor.
        if (!program.includes('from "openai"')) writeFileSync(join(folder, file), program)
      }
      await run(project, ["npm", "run", "check"])
      writeFileSync(join(folder, "wrong.ts"), `export { BrokerClient } from "svc-runtime/graph"\n`)
      const { code, out } = await end(project, ["npm", "run", "check"])
      assert.notStrictEqual(code, 0)
      assert.match(out, /wrong\.ts\(1,10\): error TS2305/)
    })

    it.live("serves what its README asks for, on the oldest Node, until SIGTERM", () =>
      Effect.gen(function* () {
        const { api, child, listeners, output, status } = yield* started(project)
        const [, publishing = [], seeing = []] = commands()
        const said = yield* Effect.forEach([...publishing, ...seeing], (command) =>
          Effect.promise(() =>
            run(project, [
              "sh",
              "-c",
              command.replace("http://127.0.0.1:8090", api).replace("http://127.0.0.1:8082", status)
            ])
          )
        )
        const [published = "", followed = "", explained = "", drawn = ""] = said
        assert.deepStrictEqual(JSON.parse(published), { task_id: "receipt-1001" })
        assert.match(followed, /^event: ready\n.*"status":"sent"/s)
        assert.deepInclude(JSON.parse(explained), { verdict: "finished" })
        assert.match(drawn, /^flowchart LR\n.*published_status/s)
        assert.match(readFileSync(join(project, "outbox/receipt-1001.txt"), "utf8"), /order 1001\. You paid 19\.99/)
        const refused = yield* Effect.promise(() => fetch(`${api}/receipts`, { method: "POST", body: "{}" }))
        assert.strictEqual(refused.status, 400)
        const malformed = yield* Effect.promise(() => fetch(`${api}/receipts`, { method: "POST", body: '{"order"' }))
        assert.strictEqual(malformed.status, 400)
        assert.property(yield* Effect.promise(() => malformed.json()), "message")

        const silent = yield* Effect.forEach(listeners, (origin) => RawConnection.open(origin))
        const [took] = yield* Effect.timed(EndedProcess.end(child, "SIGTERM"))
        assert.strictEqual(child.exitCode, 0, output())
        // a drain lasts up to 30 seconds
        assert.isBelow(Duration.toSeconds(took), 25)
        for (const connection of silent) assert.strictEqual(yield* connection.closed, "")
        assert.include(output(), "The process is draining")
      })
    )

    it.each([
      ["../my-app", /^The folder \.\.\/my-app is not empty\. .*nothing was written\.\n$/],
      ["../my-app/README.md/x", /README\.md\/x cannot be used: ENOTDIR/],
      ["../My Äpp", /^"My Äpp" cannot be the name of an npm package, .* Name the folder "my-app", for example\.\n$/],
      ["../vitest", /^The project cannot be named "vitest", because it depends on the package of that name\./],
      ["../http", /^"http" cannot be the name of an npm package, because Node or npm uses it\./]
    ])("is not written into %s", async (folder, sentence) => {
      const before = [readdirSync(parent), readFileSync(join(project, "README.md"), "utf8")]
      const { code, errors, out } = await end(app, init(folder))
      assert.deepStrictEqual([code, out], [1, ""])
      assert.match(errors, sentence)
      assert.deepStrictEqual([readdirSync(parent), readFileSync(join(project, "README.md"), "utf8")], before)
    })

    it.each(["../deep/er/other", "../empty"])("is not written by halves: %s", async (folder) => {
      mkdirSync(join(parent, "empty"), { recursive: true })
      // no file may have more than 1 KiB
      const { code, errors } = await end(app, ["bash", "-c", 'ulimit -f 1; "$@"', "bash", ...init(folder)])
      assert.strictEqual(code, 1)
      assert.match(errors, /^The project cannot be written: EFBIG: .*\. Nothing of it was kept\.\n$/)
      assert.isFalse(existsSync(join(parent, "deep")))
      assert.deepStrictEqual(readdirSync(join(parent, "empty")), [])
    })
  })

/** `npm start`, on ports that are free. */
const started = Effect.fnUntraced(function* (project: string) {
  const port = yield* LocalPort.free
  const child = spawn("npm", ["start"], {
    cwd: project,
    env: {
      ...environment(NodeVersions.folderOf(NodeVersions.oldest)),
      GATEWAY_BIND_ADDR: "127.0.0.1:0",
      GATEWAY_CONTROL_BIND_ADDR: "127.0.0.1:0",
      SVC_STATUS_BIND_ADDR: "127.0.0.1:0",
      PORT: String(port)
    },
    stdio: ["ignore", "pipe", "pipe"]
  })
  yield* Effect.addFinalizer(() => EndedProcess.end(child, "SIGTERM"))
  let said = ""
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (said += chunk))
  const output = () => said
  const exited = Effect.promise(() => once(child, "exit"))
  yield* eventually(Effect.sync(output), (said) => / {2}proxy +http/.test(said), "90 seconds").pipe(
    Effect.raceFirst(Effect.flatMap(exited, () => Effect.die(new Error(`it ended instead of starting:\n${said}`))))
  )
  const [proxy = "", control = "", status = ""] = ["proxy", "control", "status"].map(
    (name) => new RegExp(` {2}${name} +(http://[^/\\s]+)`).exec(said)?.[1]
  )
  return { api: `http://127.0.0.1:${port}`, child, listeners: [proxy, control, status], output, status }
})
